#include "parallel/order.h"

#include "parallel/composition.h"

namespace echelon {

namespace {

std::size_t bucket_bytes(OptionReader& options, std::int64_t usual) {
  return static_cast<std::size_t>(options.integer("bytes", usual, 64, std::int64_t{1} << 40));
}

Order make_backward(OptionReader& o) {
  // A message of less costs more in rounds of messages than it hides.
  return {.is_early = true, .bytes = bucket_bytes(o, 128 << 10)};
}
Order make_whole(OptionReader&) { return {}; }
Order make_fusion(OptionReader& o) { return {.is_early = true, .bytes = bucket_bytes(o, 64 << 20)}; }
Order make_priority(OptionReader& o) {
  return {.is_early = true,
          .cuts_slices = true,
          .defers = true,
          .first_needed_first = true,
          .bytes = bucket_bytes(o, 256 << 10)};
}
Order make_enforced(OptionReader& o) {
  return {.is_early = true,
          .cuts_slices = true,
          .defers = true,
          .same_everywhere = true,
          .by_times = o.choice("by", "graph", {"graph", "times"}) == "times",
          .bytes = bucket_bytes(o, 256 << 10)};
}
Order make_on_demand(OptionReader& o) {
  return {.is_early = true,
          .defers = true,
          .bytes = static_cast<std::size_t>(o.integer("bytes", 1, 1, std::int64_t{1} << 40))};
}
Order make_magnitude(OptionReader& o) {
  return {.cuts_slices = true,
          .by_magnitude = true,
          .bytes = bucket_bytes(o, 16 << 10),
          .rate = o.number("rate", 0.5, 1e-4, 1)};
}

}  // namespace

const std::vector<OrderPart>& order_parts() {
  static const std::vector<OrderPart> rows{
      {{"backward",
        "as soon as it is ready, while lower layers still run",
        {{"bytes", "131072", "of a bucket at least"}}},
       make_backward},
      {{"whole", "all of it after backward; the default where nothing can leave earlier", {}}, make_whole},
      {{"fusion",
        "the same in larger buckets: small tensors wait for each other",
        {{"bytes", "67108864", "of a bucket at least"}}},
       make_fusion},
      {{"priority", "in slices, those of the first layers first", {{"bytes", "262144", "of a slice"}}}, make_priority},
      {{"enforced",
        "the same order on all workers, computed once",
        {{"bytes", "262144", "of a slice"},
         {"by", "\"graph\"", "graph: as forward reads parameters; times: measured ones of transfers and computing"}}},
       make_enforced},
      {{"on_demand",
        "as soon as it is ready; the next forward waits for each answer when it reads it",
        {{"bytes", "1", "of a bucket at least"}}},
       make_on_demand},
      {{"magnitude",
        "the most significant first",
        {{"bytes", "16384", "of a slice"},
         {"rate", "0.5", "share of the measured link that pushes may take, and answers in the other direction"}}},
       make_magnitude},
  };
  return rows;
}

Order read_order(OptionReader& options, const std::string& usual) {
  const Order order = chosen_row(order_parts(), options, usual).make(options);
  options.done();
  return order;
}

std::string why_not_early(const Composition& c) {
  if (!c.exchange->traits().sends_early)
    return fmt::format(
        "exchange {} begins when the gradient is whole: take order whole, or exchange all_reduce or server",
        c.exchange_name);
  if (c.rule->traits().quantity != RuleTraits::Quantity::gradient)
    return fmt::format("rule {} exchanges weights, which change after it: take order whole, or rule grad_mean",
                       c.rule_name);
  if (c.codec && c.codec({})->traits().whole)
    return fmt::format("codec {} clips by the norm of the whole gradient: take order whole, or set codec.clip=0",
                       c.codec_name);
  if (!c.when.every_step())
    return "not every step has an exchange: take order whole, or leave out when.tau, probability and at_end";
  if (c.when.merges_steps())
    return "with when.n_push, n_fetch or warm_start not every step has an exchange: take order whole, or leave them "
           "out";
  if (c.sync->traits().leaves_out)
    return fmt::format("sync {} takes or leaves a worker's gradient as a whole: take order whole, or sync bsp",
                       c.sync_name);
  return {};
}

void Order::accepts(const Composition& c, const CompositionFacts&, Problems& problems) const {
  const std::string why = why_not_early(c);
  const ExchangeTraits exchange = c.exchange->traits();
  if (cuts_slices && !exchange.orders_slices)  // the rest would be about a composition that is far away
    return refuse(
        problems, true,
        fmt::format("order {} sends slices one by one, which exchange {} does not: take order {}, or exchange "
                    "server with rule grad_push",
                    c.order_name, c.exchange_name, why.empty() ? "backward" : "whole"));
  refuse(problems, is_early && !why.empty(),
         fmt::format("order {} sends while backward still runs, but {}", c.order_name, why));
  refuse(
      problems, cuts_slices && exchange.no_own_gradient,
      fmt::format("order {} cuts layers into slices, but exchange.factors are of whole layers: take order backward or "
                  "fusion, or leave out exchange.factors",
                  c.order_name));
  refuse(problems, defers && !c.sync->traits().lockstep,
         fmt::format("with order {} the next forward waits for each answer, but with sync {} not every step has one "
                     "from all: take sync bsp, or order backward",
                     c.order_name, c.sync_name));
  refuse(problems, defers && c.rule->traits().local_step,
         fmt::format("with order {} the next forward waits for the weights that servers send, but with rule {} every "
                     "worker makes the step itself: take rule grad_push, or order backward",
                     c.order_name, c.rule_name));
  if (by_magnitude) accepts_budget(c, problems);
}

// Some slices leave later than others: how late they may be must be known.
void Order::accepts_budget(const Composition& c, Problems& problems) const {
  const std::string& name = c.order_name;
  refuse(problems, static_cast<bool>(c.codec),
         fmt::format("order {} chooses what is sent, and so would a codec with error feedback: take codec none", name));
  refuse(problems, !c.sync->traits().bounded,
         fmt::format("order {} sends some slices later than others, but with sync {} it is not known how late they "
                     "may be: take sync ssp or essp",
                     name, c.sync_name));
}

}  // namespace echelon
