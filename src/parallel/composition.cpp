#include "parallel/composition.h"

#include <algorithm>

#include "parallel/sum/coded_sum.h"
#include "parallel/team/step_report.h"
#include "parallel/team/work_scheduler.h"

namespace echelon {

namespace {

std::string name_in(const Options& table, const std::string& fallback) {
  const auto found = table.items.find("name");
  if (found == table.items.end()) return fallback;
  const auto* text = std::get_if<std::string>(&found->second.value);
  return text ? *text : fallback;
}

// The same, and the fallback for a name that no part has.
template <typename Row>
std::string known_name_in(const Options& table, const std::vector<Row>& rows, const std::string& fallback) {
  const std::string name = name_in(table, fallback);
  return find_row(rows, name) ? name : fallback;
}

}  // namespace

bool Composition::is_exact() const {
  return rule_name == "grad_mean" && exchange_name == "all_reduce" && exchange->is_exact() && !codec &&
         codec_choice.empty() && sync->traits().lockstep && when.every_step() && order_name == "backward";
}

bool Composition::uses_messages() const {
  const ExchangeTraits traits = exchange->traits();
  return !traits.in_lockstep || (traits.either_pace && !sync->traits().lockstep);
}

bool Composition::follows_messages() const {
  return !exchange->traits().by_clock && !exchange->traits().cores_race && !rule->traits().by_clock &&
         !sync->traits().hands_in_early && !order.by_times && !order.by_magnitude && codec_choice.empty();
}

bool Composition::workers_step() const { return rule->traits().local_step || uses_messages() || !when.every_step(); }

Composition read_composition(const CompositionTables& t, Problems& problems) {
  Composition c;
  c.name = t.name;
  c.rule_name = name_in(t.rule, "grad_mean");
  c.exchange_name = name_in(t.exchange, "all_reduce");
  c.sync_name = known_name_in(t.sync, sync_parts(), "bsp");
  c.codec_name = name_in(t.codec, "none");
  OptionReader rule(t.rule, problems), exchange(t.exchange, problems), when(t.when, problems);
  OptionReader sync(t.sync, problems), codec(t.codec, problems), order(t.order, problems);
  c.rule = read_rule(rule);
  c.exchange = read_exchange(exchange);
  c.when = read_when(when);
  c.sync = read_sync(sync);
  c.work = c.sync->work();
  std::vector<std::string> codecs = codec_names();
  codecs.emplace_back("auto");
  if (std::ranges::find(codecs, c.codec_name) == codecs.end())
    c.codec_name = codec.choice("name", "none", codecs);  // says what there is
  else if (c.codec_name == "auto")
    c.codec_choice = read_codec_choice(codec);
  else if (CodecMaker maker = read_codec(codec); c.codec_name != "none")
    c.codec = std::move(maker);
  const char* usual_order = why_not_early(c).empty() ? "backward" : "whole";
  c.order_name = known_name_in(t.order, order_parts(), usual_order);
  c.order = read_order(order, usual_order);
  return c;
}

namespace {

// It refers to the composition and the pieces.
ExchangeKind::TrafficQuery traffic_query(const Composition& c, int workers, const std::vector<CodecPiece>& pieces,
                                         const std::vector<Range>& buckets, CodecBytes bytes,
                                         const FactorFacts& factors) {
  ExchangeKind::TrafficQuery facts{.workers = workers,
                                   .floats = 0,
                                   .buckets = buckets,
                                   .encoded = {},
                                   .coded_rounds = {},
                                   .sync = c.sync.get(),
                                   .order = c.order,
                                   .rule = c.rule->traits(),
                                   .batch = factors.batch,
                                   .products = factors.products,
                                   .members = {},
                                   .when = c.when,
                                   .usually = {}};
  for (const CodecPiece& p : pieces) facts.tensors.push_back(facts.floats), facts.floats += p.size;
  facts.most = bytes == CodecBytes::most;
  if (c.codec) {
    const auto whole = c.codec(pieces);
    facts.codec = whole->traits();
    facts.sizes_vary = !whole->same_size_always();
    facts.codes_answers = c.rule->traits().answers_changes || facts.codec.weights;
    facts.usually = [&c, &pieces](Range r) { return c.codec(pieces_within(pieces, r))->usual_bytes(); };
    facts.coded_rounds = [&c, &pieces](Range r) { return c.codec(pieces_within(pieces, r))->rounds(); };
    facts.encoded = [&c, &pieces, bytes](Range r) {
      const auto codec = c.codec(pieces_within(pieces, r));
      return bytes == CodecBytes::usual ? codec->usual_bytes() : static_cast<double>(codec->most_bytes());
    };
  }
  return facts;
}

}  // namespace

ExchangeKind::TrafficTexts traffic_texts(const Composition& c, int workers, const std::vector<CodecPiece>& pieces,
                                         const std::vector<Range>& buckets) {
  return c.exchange->traffic_texts(traffic_query(c, workers, pieces, buckets, CodecBytes::usual, {}));
}

ExchangeKind::Traffic traffic_per_step(const Composition& c, int workers, const std::vector<CodecPiece>& pieces,
                                       const std::vector<Range>& buckets, CodecBytes bytes,
                                       const FactorFacts& factors) {
  const ExchangeKind::TrafficQuery facts = traffic_query(c, workers, pieces, buckets, bytes, factors);
  When when = c.when;
  when.tau = c.exchange->steps_between(when.tau);
  double often = when.at_end ? 0 : when.probability < 1 ? when.probability : 1.0 / static_cast<double>(when.tau);
  ExchangeKind::Traffic exchange = often * c.exchange->traffic(facts);
  exchange.at_most |= !c.codec_choice.empty();  // a codec may be chosen, and sends less
  return exchange + (c.uses_messages() ? work_traffic(workers) : report_traffic(when, workers));
}

}  // namespace echelon
