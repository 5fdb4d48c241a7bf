#include "parallel/exchanges/exchanges.h"

#include <algorithm>

#include "parallel/axes.h"
#include "parallel/composition.h"

namespace echelon {

const std::vector<ExchangePart>& exchange_parts() {
  using namespace exchanges;
  static const std::vector<ExchangePart> rows{
      all_reduce(), owner_shard(),   server(),       neighbour(), random_peer(), partial(),    factors(),
      learners(),   shared_memory(), elastic_tree(), nested(),    scheduled(),   all_to_all(), coordinator()};
  return rows;
}

std::unique_ptr<const ExchangeKind> read_exchange(OptionReader& options) {
  refuse_moved_settings(options);
  auto kind = chosen_row(exchange_parts(), options, "all_reduce").make(options);
  options.done();
  return kind;
}

void ExchangeKind::accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const {
  const ExchangeTraits exchange = traits();
  refuse(problems, exchange.in_lockstep && !exchange.either_pace && !c.sync->traits().lockstep,
         fmt::format("exchange {} has all workers at the same step, so sync {} has no meaning there: take sync bsp, or "
                     "exchange server",
                     c.exchange_name, c.sync_name));
  refuse(problems, exchange.plain_numbers && c.codec,
         fmt::format("exchange {} sends plain numbers: take codec none, or exchange all_reduce for codec {}",
                     c.exchange_name, c.codec_name));
  refuse(problems, !exchange.chooses_codec && !c.codec_choice.empty(),
         fmt::format("exchange {} cannot change its codec on the way: name one instead of auto, or take exchange "
                     "all_reduce",
                     c.exchange_name));
  refuse(
      problems, facts.split && exchange.shared_memory,
      fmt::format("exchange {} has all workers write into one memory, and the stages of a split replica are on ranks "
                  "of their own: leave out --plan, or take exchange server",
                  c.exchange_name));
  refuse(problems, facts.split && exchange.no_own_gradient,
         "exchange.factors sends inputs and errors of a layer, and the micro-batches of a split replica have them at "
         "different times: set exchange.factors=false, or leave out --plan");
  if (facts.workers == 0) return;
  if (const std::string why = problem(facts.workers, static_cast<bool>(c.codec)); !why.empty()) problems.add({}, why);
  if (facts.steps == 0) return;
  const std::int64_t tau = steps_between(c.when.tau), exchanges = (facts.steps + tau - 1) / tau;
  const std::int64_t most = c.sync->traits().in_rounds ? exchanges : exchanges * facts.workers;
  if (const std::string why = problem_within(most); !why.empty()) problems.add({}, why);
}

ReplicaView ExchangeParts::view() const {
  return {.weights = trainer->parameters(),
          .gradient = trainer->gradient(),
          .segments = &trainer->segments(),
          .rank = rank(),
          .workers = workers()};
}

MergeRule::Place ExchangeParts::place(Range range) const {
  MergeRule::Place place{.start = trainer->parameters().subspan(range.begin, range.count()),
                         .segments = {},
                         .workers = workers(),
                         .make_optim = make_optim};
  for (TrainedSpan s : trainer->segments()) {
    const std::size_t begin = std::max(s.offset, range.begin), end = std::min(s.offset + s.size, range.end);
    if (begin >= end || s.statistic) continue;
    s.offset = begin - range.begin, s.size = end - begin;
    place.segments.push_back(s);
  }
  return place;
}

std::vector<CodecPiece> ExchangeParts::pieces(Range range) const { return pieces_of(trainer->table(), range); }

std::vector<CodecPiece> pieces_of(const ParameterTable& table, Range range) {
  std::vector<CodecPiece> pieces;
  std::size_t at = range.begin;
  auto cover = [&](std::size_t end, std::size_t rows) {
    if (end > at) pieces.push_back({end - at, rows});
    at = std::max(at, end);
  };
  for (const auto& e : table.entries()) {  // in the order of offsets, perhaps with gaps
    if (e.offset + e.size <= range.begin || e.offset >= range.end) continue;
    cover(std::min(e.offset, range.end), 1);
    const bool whole = e.offset >= range.begin && e.offset + e.size <= range.end;
    const auto& dims = e.parameter.shape.dims();
    cover(std::min(e.offset + e.size, range.end), whole && dims.size() > 1 ? static_cast<std::size_t>(dims[0]) : 1);
  }
  cover(range.end, 1);
  return pieces;
}

Stream ExchangeParts::random(const char* purpose, std::int64_t step) const {
  return Stream({seed, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(rank()), stream_layer(purpose)});
}

// Step, key and purpose have a word each; the rank shares the seed's.
Stream ExchangeParts::random(const char* purpose, std::int64_t step, std::uint32_t key) const {
  const std::uint64_t own = seed ^ (static_cast<std::uint64_t>(rank()) + 1) << 32;
  return Stream({own, static_cast<std::uint32_t>(step), key, stream_layer(purpose)});
}

}  // namespace echelon
