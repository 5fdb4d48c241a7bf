// All workers' contributions summed by a collective; every worker then computes the same answer, so that none has to be
// sent. Buckets leave while backward still runs (exchanges/bucket_sums.h).

#include <algorithm>
#include <numeric>
#include <optional>

#include "collective/algorithms.h"
#include "collective/shard_sum.h"
#include "parallel/exchanges/bucket_sums.h"
#include "parallel/exchanges/exchanges.h"
#include "parallel/sum/auto_sum.h"
#include "parallel/sum/coded_sum.h"

namespace echelon::exchanges {

namespace {

struct AllReduceSettings {
  // Null: in the fixed tree, whatever the number of workers. Below `switch_bytes` another one may be quicker.
  const Algorithm *algorithm = nullptr, *small_algorithm = nullptr;
  std::size_t switch_bytes = 0;
  const Algorithm* for_bytes(std::size_t bytes) const { return bytes < switch_bytes ? small_algorithm : algorithm; }
  std::optional<CodedSum::Way> way;
  bool measured_way = false;   // the one that should be quickest on these links
  bool sums_sparsely = false;  // by doubling or split, whichever sends less; with `way` in that way
  SparseSettings sparse;
  std::string algorithm_name() const {
    return small_algorithm ? "auto" : algorithm ? std::string(algorithm->name) : "exact";
  }
  bool is_sparse() const { return sums_sparsely || way == CodedSum::Way::doubling; }
  CodedSum::Way sparse_way(double entries, std::size_t numbers, int n) const {
    return way ? *way : CodedSum::sparse_way(entries, numbers, n, sparse);
  }
};

class AllReduce : public Exchange {
 public:
  AllReduce(const AllReduceSettings& settings, ExchangeParts parts)
      : settings_(settings),
        parts_(std::move(parts)),
        worker_(parts_.rule->make_worker(parts_.view())),
        buckets_(parts_, *worker_, [this](Group& g, std::size_t i, std::span<float> out) { sum(g, i, out); }) {
    for (std::size_t i = 0; i < buckets_.count(); ++i) codings_.push_back(make_coding(buckets_.range(i)));
  }

  void before_step(const StepInfo& info) override {
    info_ = info;
    buckets_.begin_step();
  }

  double exchange(const StepInfo& info) override {
    buckets_.conclude(info);
    return parts_.rule->traits().local_step ? 1 : 0;
  }

  void drain() override {}
  void read_model(std::span<float> out) override { buckets_.read_model(out); }

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    add_states(all, "worker ", worker_->state());
    for (std::size_t i = 0; i < codings_.size(); ++i) {
      const std::string prefix = fmt::format("codec {} ", i);
      if (codings_[i].coded) add_states(all, prefix, codings_[i].coded->state());
      if (codings_[i].chosen) add_states(all, prefix, codings_[i].chosen->state());
    }
    add_states(all, "", buckets_.state());
    return all;
  }

 private:
  struct Coding {                     // of a bucket; plain numbers if it has neither
    std::unique_ptr<CodedSum> coded;  // by the codec that was named
    std::unique_ptr<AutoSum> chosen;  // by one that is to be chosen
  };

  Coding make_coding(Range range) {
    const auto pieces = parts_.pieces(range);
    if (!parts_.codec_choice.empty())
      return {nullptr, std::make_unique<AutoSum>(parts_.codec_choice, pieces, parts_.workers(), parts_.rank())};
    if (!parts_.codec && !settings_.is_sparse()) return {};
    return {std::make_unique<CodedSum>(way_of(range, pieces), parts_.codec, pieces, parts_.workers(), parts_.rank(),
                                       settings_.sparse),
            nullptr};
  }

  CodedSum::Way way_of(Range range, const std::vector<CodecPiece>& pieces) {
    if (settings_.is_sparse()) {
      const double entries =
          parts_.codec ? parts_.codec(pieces)->usual_bytes() / 6 : static_cast<double>(range.count());
      return settings_.sparse_way(entries, range.count(), parts_.workers());
    }
    if (settings_.way) return *settings_.way;
    const auto encoding = CodedSum::Encoding::of(*parts_.codec(pieces));
    if (!settings_.measured_way) return CodedSum::usual_way(encoding, range.count(), parts_.workers());
    return CodedSum::quickest_way(encoding, range.count(), parts_.workers(), link_costs(parts_.team->group()));
  }

  // In the buckets' task.
  void sum(Group& group, std::size_t bucket, std::span<float> out) {
    const bool gradient = parts_.rule->traits().quantity == RuleTraits::Quantity::gradient;
    const double share = gradient ? info_.share : 1.0 / parts_.workers();
    worker_->contribute(buckets_.range(bucket), share, out);
    const CodecStep step{.number = buckets_.rounds(),
                         .epoch = info_.epoch,
                         .share = share,
                         .random = parts_.random("codec", info_.clock, static_cast<std::uint32_t>(bucket))};
    const Coding& coding = codings_[bucket];
    if (coding.coded)
      coding.coded->run(group, out, step);
    else if (coding.chosen)
      coding.chosen->run(group, out, step, [this](Group& g, std::span<float> values) { plain_sum(g, values); });
    else
      plain_sum(group, out);
  }

  void plain_sum(Group& group, std::span<float> out) {
    if (const Algorithm* algorithm = settings_.for_bytes(out.size_bytes()))
      all_reduce(group, out, Reduction::sum, {.algorithm = algorithm});
    else
      all_reduce_members(group, out);
  }

  AllReduceSettings settings_;
  ExchangeParts parts_;
  std::unique_ptr<WorkerSide> worker_;
  std::vector<Coding> codings_;  // by bucket
  StepInfo info_;                // of the step that is under way
  BucketSums buckets_;           // last
};

class AllReduceKind : public ExchangeKind {
 public:
  explicit AllReduceKind(const AllReduceSettings& settings) : settings_(settings) {}
  bool is_exact() const override { return !settings_.algorithm && !settings_.is_sparse(); }
  ExchangeTraits traits() const override {
    return {.in_lockstep = true, .sums = true, .chooses_codec = true, .sends_early = true};
  }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<AllReduce>(settings_, std::move(parts));
  }
  std::string problem(int workers, bool) const override {
    const std::vector<int>& degrees = settings_.sparse.degrees;
    const auto product = std::accumulate(degrees.begin(), degrees.end(), std::int64_t{1}, [](std::int64_t a, int b) {
      return std::min<std::int64_t>(a * b, 1'000'000'000);
    });
    if (degrees.empty() || product == workers) return {};
    return fmt::format(
        "exchange.degrees are those of {} workers, and there are {}: take degrees whose product is {}, or "
        "leave them out",
        product, workers, workers);
  }
  std::string traffic_text() const override { return traffic_texts({}).bytes; }
  std::string messages_text() const override { return traffic_texts({}).messages; }
  TrafficTexts traffic_texts(const TrafficQuery& c) const override {
    const Range first = c.order.is_early && !c.buckets.empty() ? c.buckets.front() : Range{0, c.floats};
    TrafficTexts texts = settings_.is_sparse() || c.encoded ? coded_texts(way_of(c, first), c.sizes_vary)
                                                            : plain_texts(settings_.algorithm_name());
    texts.messages += ", for each bucket that leaves by itself";
    return texts;
  }
  Traffic traffic(const TrafficQuery& c) const override {
    const bool overlaps = c.order.is_early;
    Traffic sum;
    for (const Range& r : overlaps && !c.buckets.empty() ? c.buckets : std::vector<Range>{{0, c.floats}})
      sum = sum + bucket_traffic(c, r);
    return sum;
  }

 private:
  Traffic bucket_traffic(const TrafficQuery& c, Range r) const {
    if (settings_.is_sparse()) return sparse_traffic(c, r);
    if (c.encoded) return coded_sum_traffic(way_of(c, r), c, r);
    Traffic sum;
    std::vector<int> hosts(static_cast<std::size_t>(c.workers));  // a worker on each
    std::iota(hosts.begin(), hosts.end(), 0);
    for (int i = 0; i < c.workers; ++i) {
      const HostTopology topology = host_topology_of(hosts, i);
      const Algorithm* algorithm = settings_.for_bytes(r.count() * sizeof(float));
      const auto sent =
          algorithm
              ? algorithm->traffic({.n = c.workers, .index = i, .count = r.count(), .item = 4, .hosts = &topology})
              : shard_sum_traffic(i, c.workers, c.workers, r.count());
      sum = sum + Traffic{static_cast<double>(sent.messages), static_cast<double>(sent.bytes)};
    }
    return sum;
  }

  Traffic sparse_traffic(const TrafficQuery& c, Range r) const {
    using Way = CodedSum::Way;
    const auto all = static_cast<double>(r.count());
    const double usual = c.encoded ? c.usual_bytes(r) / 6 : all;
    // Most of what a codec writes is places and values of 6 bytes; some write places alone, of 2.
    const double entries = !c.encoded ? all : c.most ? c.bytes(r) / 2 : usual;
    const SparseSettings& s = settings_.sparse;
    const Way way = way_of(c, r);
    const SparseTraffic t =
        way == Way::butterfly ? butterfly_sum_traffic(s.degrees_for(c.workers, usual), r.count(), entries, c.most)
        : way == Way::split   ? split_sum_traffic(c.workers, r.count(), entries, s.may_switch, s.dense_byte(), c.most)
                              : sparse_sum_traffic(c.workers, r.count(), entries, s.may_switch, c.most);
    return {t.messages, t.bytes};
  }

  CodedSum::Way way_of(const TrafficQuery& c, Range r) const {
    if (settings_.is_sparse()) {
      const double entries = c.encoded ? c.usual_bytes(r) / 6 : static_cast<double>(r.count());
      return settings_.sparse_way(entries, r.count(), c.workers);
    }
    return settings_.way.value_or(
        CodedSum::usual_way({c.codec, c.sizes_vary, c.bytes(r), c.rounds(r)}, r.count(), c.workers));
  }

  static TrafficTexts plain_texts(const std::string& algorithm) {
    const std::string whole = "2 (n-1) W: ";
    if (algorithm == "ring") return {whole + "parts go once round a ring, and their sums once more", "2 n (n-1)"};
    if (algorithm == "rabenseifner") return {whole + "halves, quarters, ... to partners, and back", "2 n log2 n"};
    if (algorithm == "recursive-doubling") return {"n log2 n W: everything to a partner, log2 n times", "n log2 n"};
    if (algorithm == "binomial") return {whole + "up a tree, and down again", "2 (n-1)"};
    if (algorithm == "hierarchical")
      return {whole + "up to the first worker of each of h hosts, round a ring of these, and down again",
              "2 (n-h) + 2 h (h-1)"};
    if (algorithm == "auto")
      return {whole + "by halving and doubling, or in a ring", "2 n log2 n below switch_bytes, else 2 n (n-1)"};
    if (algorithm == "exact") return {whole + "every number goes to its owner, and its sum back to all", "2 n (n-1)"};
    return {"as docs/collectives.md says of " + algorithm, "the same"};
  }

  static TrafficTexts coded_texts(CodedSum::Way way, bool sizes_vary) {
    using Way = CodedSum::Way;
    const std::string sizes = sizes_vary ? ", and as many of 8 bytes, which say their sizes" : "";
    if (way == Way::gather) return {"n (n-1) W: everything to all", "n (n-1)" + sizes};
    if (way == Way::owners)
      return {"2 (n-1) W: every number goes to its owner, and its sum, encoded again, back to all",
              "2 n (n-1)" + sizes};
    if (way == Way::rounds) return {"2 (n-1) W: plain sums of the factors, at owners and back", "4 n (n-1)"};
    if (way == Way::doubling)
      return {"n (W + what sums of 2, 4, ... workers have): everything to a partner, log2 n times", "2 n log2 n"};
    if (way == Way::split)
      return {"(n-1) (W + what the sums have): pairs to the owners of their places, and the sums to all", "4 n (n-1)"};
    return {"what a layer's sums have, down and up: to the d - 1 others of a group of each of the layers",
            "2 n (d - 1) a layer and direction, with the sizes"};
  }

  static Traffic plain_sum_traffic(const TrafficQuery& c, std::size_t numbers) {
    Traffic sum;
    for (int i = 0; numbers > 0 && i < c.workers; ++i) {
      const MemberTraffic sent = shard_sum_traffic(i, c.workers, c.workers, numbers);
      sum = sum + Traffic{static_cast<double>(sent.messages), static_cast<double>(sent.bytes)};
    }
    return sum;
  }

  // Sizes that vary go ahead, 8 bytes each.
  static Traffic coded_sum_traffic(CodedSum::Way way, const TrafficQuery& c, Range r) {
    const double n = c.workers, pairs = n * (n - 1), sizes = c.sizes_vary ? pairs : 0;
    if (way == CodedSum::Way::rounds)
      return plain_sum_traffic(c, c.rounds(r).first) + plain_sum_traffic(c, c.rounds(r).second);
    if (way == CodedSum::Way::gather) return {pairs + sizes, pairs * c.bytes(r) + 8 * sizes};
    Traffic sum{2 * (pairs + sizes), 2 * 8 * sizes};
    for (int i = 0; i < c.workers; ++i) {
      const Range part = part_of(i, c.workers, r.count(), 16);
      sum.bytes += 2 * (n - 1) * c.bytes({r.begin + part.begin, r.begin + part.end});
    }
    return sum;
  }

  AllReduceSettings settings_;
};

// SparCML's and Kylix's.
void read_sparse(OptionReader& options, AllReduceSettings& s) {
  s.sums_sparsely = true;
  if (options.text("algorithm", "") == "nested_butterfly") {
    s.way = CodedSum::Way::butterfly;
    for (const std::int64_t d : options.integers("degrees", {}, 2, 100'000))
      s.sparse.degrees.push_back(static_cast<int>(d));
    s.sparse.packet = static_cast<double>(options.integer("packet", 4096, 1, std::int64_t{1} << 40));
    return;
  }
  s.sparse.may_switch = options.flag("switch", true);
  s.sparse.message_bytes = static_cast<double>(options.integer("message_bytes", 4096, 0, std::int64_t{1} << 40));
  const auto bits = options.integer("value_bits", 0, 0, 8);
  if (bits == 1) options.problem("value_bits", "needs one bit for the sign: take 2 to 8, or 0 for float32");
  if (bits < 2) return;
  Options table;
  table.items["name"] = Option{std::string("qsgd")};
  table.items["levels"] = Option{(std::int64_t{1} << (bits - 1)) - 1};
  table.items["norm"] = Option{std::string("max")};
  OptionReader reader(table, options.problems());
  s.sparse.dense = read_codec(reader);
}

std::unique_ptr<const ExchangeKind> make_all_reduce(OptionReader& options) {
  std::vector<std::string> names{"exact", "auto"};
  for (const Algorithm& a : all_reduce_algorithms())
    if (a.name != "native") names.emplace_back(a.name);  // the messages of MPI's own cannot be counted
  AllReduceSettings s;
  names.insert(names.end(), {"sparse", "nested_butterfly"});
  const std::string name = options.choice("algorithm", "exact", names);
  if (name == "auto") {  // few steps where latency counts, few bytes where they do
    s.algorithm = &find_algorithm("ring");
    s.small_algorithm = &find_algorithm("rabenseifner");
    s.switch_bytes = static_cast<std::size_t>(options.integer("switch_bytes", 256 << 10, 0, std::int64_t{1} << 40));
  } else if (name == "sparse" || name == "nested_butterfly") {
    read_sparse(options, s);
    return std::make_unique<AllReduceKind>(s);
  } else if (name != "exact" && std::ranges::find(names, name) != names.end()) {
    s.algorithm = &find_algorithm(name);
  }
  const std::string way = options.choice("way", "auto", {"auto", "gather", "owners", "doubling", "measured"});
  if (way == "gather") s.way = CodedSum::Way::gather;
  if (way == "owners") s.way = CodedSum::Way::owners;
  if (way == "doubling") s.way = CodedSum::Way::doubling;
  s.measured_way = way == "measured";
  return std::make_unique<AllReduceKind>(s);
}

}  // namespace

ExchangePart all_reduce() {
  return {
      {"all_reduce",
       "all workers, by a collective",
       {{"algorithm", "\"exact\"",
         "exact (the same bits for any number of workers), auto, or one of docs/collectives.md"},
        {"way", "\"auto\"", "of encoded sums: gather, owners, doubling, measured; auto: by their size"},
        {"switch_bytes", "262144", "algorithm auto: smaller buckets by halving and doubling, others in a ring"},
        {"switch", "true", "algorithm sparse: turn dense when that is smaller"},
        {"value_bits", "0", "the same: bits of a number in sums at their owners that have turned dense; 0: float32"},
        {"message_bytes", "4096",
         "the same: a message counts as so many bytes, where doubling is compared with sums at owners"},
        {"degrees", "[]", "algorithm nested_butterfly: of its layers, whose product is n; []: by the size of lists"},
        {"packet", "4096", "the same: bytes that a message should have at least"}}},
      make_all_reduce};
}

}  // namespace echelon::exchanges
