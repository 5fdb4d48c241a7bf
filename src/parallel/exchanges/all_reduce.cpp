// All workers' contributions summed by a collective; every worker then concludes alike, so that nobody needs to send
// the answer. Portions go out while backward still runs, in a task of their own (collective/lane.h).

#include <algorithm>
#include <numeric>
#include <optional>

#include "collective/algorithms.h"
#include "collective/lane.h"
#include "collective/shard_sum.h"
#include "parallel/auto_sum.h"
#include "parallel/coded_sum.h"
#include "parallel/exchanges/exchanges.h"

namespace echelon::exchanges {

namespace {

constexpr double long_time = 1e9;          // seconds: the collectives inside have their own, shorter patience
constexpr std::size_t most_portions = 48;  // a lane takes 64 orders

struct Settings {
  // Null: in the fixed tree, whatever the number of workers. Below `switch_bytes` another one may be quicker.
  const Algorithm *algorithm = nullptr, *small_algorithm = nullptr;
  std::size_t switch_bytes = 0;
  const Algorithm* for_bytes(std::size_t bytes) const { return bytes < switch_bytes ? small_algorithm : algorithm; }
  std::optional<CodedSum::Way> way;
  bool measured_way = false;  // the one that should be quickest on these links
  bool may_switch = true;     // sparse sums may become dense
  bool is_sparse() const { return way == CodedSum::Way::doubling; }
};

class AllReduce : public Exchange {
 public:
  AllReduce(const Settings& settings, ExchangeParts parts)
      : settings_(settings),
        parts_(std::move(parts)),
        worker_(parts_.rule->make_worker(parts_.view())),
        sum_(parts_.floats() * sizeof(float)),
        lane_(parts_.crew->group()) {
    const RuleTraits rule = parts_.rule->traits();
    overlaps_ = rule.moment == RuleTraits::Moment::gradient && parts_.period.tau == 1 &&
                parts_.period.probability >= 1 && parts_.order.kind != Order::Kind::whole;
    if (overlaps_) {
      std::size_t bytes = parts_.order.kind == Order::Kind::fusion ? parts_.order.bytes : 1;
      const auto ready = [this](const Bucket& b) { is_ready(b); };
      for (parts_.trainer->send_buckets(bytes, ready); parts_.trainer->buckets().size() > most_portions; bytes *= 2)
        parts_.trainer->send_buckets(bytes, ready);
      for (const Bucket& b : parts_.trainer->buckets()) add_portion({b.begin, b.end});
    } else {
      add_portion({0, parts_.floats()});
    }
  }

  void before_step(const StepMoment& moment) override {
    if (overlaps_) start(moment);
  }

  double exchange(const StepMoment& moment) override {
    if (!overlaps_) {
      start(moment);
      portions_.front()->ready->notify();
    }
    for (auto& p : portions_) {
      p->pending.wait(long_time);
      conclude(*p, moment);
    }
    return parts_.rule->traits().local_step ? 1 : 0;
  }

  void settle() override {}

  void read_model(std::span<float> out) override {
    for (auto& p : portions_)
      if (p->shared) std::ranges::copy(p->shared->model(), out.begin() + static_cast<std::ptrdiff_t>(p->range.begin));
  }

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    for (StateSpan& s : worker_->state()) all.push_back({"worker " + s.name, s.bytes});
    for (std::size_t i = 0; i < portions_.size(); ++i) {
      if (portions_[i]->shared)
        for (StateSpan& s : portions_[i]->shared->state())
          all.push_back({fmt::format("shared {} {}", i, s.name), s.bytes});
      if (portions_[i]->coded)
        for (StateSpan& s : portions_[i]->coded->state(fmt::format("codec {}", i))) all.push_back(s);
      if (portions_[i]->chosen)
        for (StateSpan& s : portions_[i]->chosen->state(fmt::format("codec {}", i))) all.push_back(s);
    }
    all.push_back({"rounds", std::as_writable_bytes(std::span(&rounds_, 1))});
    return all;
  }

 private:
  struct Portion {
    Range range;
    std::unique_ptr<SharedSide> shared;  // null if the mean is the answer
    std::unique_ptr<CodedSum> coded;     // null without a codec
    std::unique_ptr<AutoSum> chosen;     // instead, if a codec is to be chosen
    std::unique_ptr<Event> ready;
    std::uint64_t times = 0;  // that it was started
    Pending pending;
    StepMoment moment;
  };

  void add_portion(Range range) {
    auto p = std::make_unique<Portion>();
    p->range = range;
    if (!parts_.rule->traits().answers_mean) p->shared = parts_.rule->make_shared(parts_.place(range));
    const auto pieces = parts_.pieces(range);
    if (!parts_.codec_choice.empty())
      p->chosen = std::make_unique<AutoSum>(parts_.codec_choice, pieces, parts_.workers(), parts_.rank());
    else if (parts_.codec || settings_.is_sparse())
      p->coded = std::make_unique<CodedSum>(way_of(range, pieces), parts_.codec, pieces, parts_.workers(),
                                            parts_.rank(), settings_.may_switch);
    p->ready = parts_.world->make_event();
    portions_.push_back(std::move(p));
  }

  CodedSum::Way way_of(Range range, const std::vector<CodecPiece>& pieces) {
    if (settings_.way) return *settings_.way;
    const auto codec = parts_.codec(pieces);
    if (!settings_.measured_way) return CodedSum::usual_way(codec->traits());
    return CodedSum::quickest_way(codec->traits(), codec->usual_bytes(), range.count(), parts_.workers(),
                                  link_of(parts_.crew->group()));
  }

  // The lane has all portions in order, and waits for each until it is there.
  void start(const StepMoment& moment) {
    for (auto& p : portions_) {
      p->moment = moment;
      ++p->times;
      p->pending = lane_.start([this, portion = p.get()](Group& group) { sum(group, *portion); });
    }
    ++rounds_;
  }

  void is_ready(const Bucket& bucket) {
    for (auto& p : portions_)
      if (p->range.begin == bucket.begin) p->ready->notify();
  }

  // In the lane's task.
  void sum(Group& group, Portion& p) {
    p.ready->wait(p.times, long_time);
    const bool gradient = parts_.rule->traits().moment == RuleTraits::Moment::gradient;
    const std::span<float> out = sum_.as<float>().subspan(p.range.begin, p.range.count());
    worker_->contribute(p.range, gradient ? p.moment.share : 1.0 / parts_.workers(), out);
    const CodecStep step{.number = rounds_, .epoch = p.moment.epoch, .random = parts_.random("codec", p.moment.clock)};
    if (p.coded)
      p.coded->run(group, out, step);
    else if (p.chosen)
      p.chosen->run(group, out, step, [this](Group& g, std::span<float> values) { plain_sum(g, values); });
    else
      plain_sum(group, out);
  }

  void plain_sum(Group& group, std::span<float> out) {
    if (const Algorithm* algorithm = settings_.for_bytes(out.size_bytes())) {
      all_reduce(group, out, Reduction::sum, {.algorithm = algorithm});
    } else {
      const PartialSum mine{parts_.rank(), parts_.rank() + 1, out.data()};
      all_reduce_shards(group,
                        {.shards = parts_.workers(), .partials = {&mine, 1}, .end = out.size(), .out = out.data()});
    }
  }

  void conclude(Portion& p, const StepMoment& moment) {
    const std::span<float> mean = sum_.as<float>().subspan(p.range.begin, p.range.count());
    if (!p.shared) return worker_->apply(p.range, mean);
    p.shared->conclude(mean, {.number = rounds_, .lr = moment.lr, .contributions = parts_.workers()});
    worker_->apply(p.range, p.shared->answer());
  }

  Settings settings_;
  ExchangeParts parts_;
  std::unique_ptr<WorkerSide> worker_;
  Buffer sum_;
  bool overlaps_ = false;
  std::vector<std::unique_ptr<Portion>> portions_;
  std::int64_t rounds_ = 0;
  Lane lane_;  // last: its task ends before what it uses
};

class Kind : public ExchangeKind {
 public:
  explicit Kind(const Settings& settings) : settings_(settings) {}
  bool is_exact() const override { return !settings_.algorithm && !settings_.is_sparse(); }
  ExchangeTraits traits() const override { return {.in_lockstep = true, .sums = true, .chooses_codec = true}; }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<AllReduce>(settings_, std::move(parts));
  }
  std::string traffic_text() const override {
    return "2 (n-1) W: every number goes to its owner, and its sum back to all (a sparse codec: (n-1) n W, everything "
           "to "
           "everybody; other algorithms: docs/collectives.md)";
  }
  Traffic traffic(const Case& c) const override {
    const bool overlaps = c.rule.moment == RuleTraits::Moment::gradient && c.order.kind != Order::Kind::whole;
    Traffic sum;
    for (const Range& r : overlaps && !c.portions.empty() ? c.portions : std::vector<Range>{{0, c.floats}})
      sum = sum + portion_traffic(c, r);
    return sum;
  }

 private:
  Traffic portion_traffic(const Case& c, Range r) const {
    if (settings_.is_sparse()) {
      // Most of what a codec writes is places and values of 6 bytes; some write places alone, of 2.
      const double entries = c.bytes(r) / (c.most ? 2 : 6);
      const SparseTraffic t = sparse_sum_traffic(
          c.workers, r.count(), c.encoded ? entries : static_cast<double>(r.count()), settings_.may_switch, c.most);
      return {t.messages, t.bytes};
    }
    if (c.encoded)
      return coded_sum_traffic(settings_.way.value_or(c.sparse ? CodedSum::Way::gather : CodedSum::Way::owners), c, r);
    Traffic sum;
    std::vector<int> hosts(static_cast<std::size_t>(c.workers));  // a worker on each
    std::iota(hosts.begin(), hosts.end(), 0);
    for (int i = 0; i < c.workers; ++i) {
      const Site site = site_of(hosts, i);
      const Algorithm* algorithm = settings_.for_bytes(r.count() * sizeof(float));
      const auto sent =
          algorithm ? algorithm->traffic({.n = c.workers, .index = i, .count = r.count(), .item = 4, .site = &site})
                    : owners_shard_traffic(i, c.workers, c.workers, r.count());
      sum = sum + Traffic{static_cast<double>(sent.messages), static_cast<double>(sent.bytes)};
    }
    return sum;
  }

  // Sizes go ahead, 8 bytes each.
  static Traffic coded_sum_traffic(CodedSum::Way way, const Case& c, Range r) {
    const double n = c.workers, pairs = n * (n - 1);
    if (way == CodedSum::Way::gather) return {2 * pairs, pairs * (8 + c.bytes(r))};
    Traffic sum{4 * pairs, 2 * pairs * 8 * n};
    for (int i = 0; i < c.workers; ++i) {
      const Range part = part_of(i, c.workers, r.count(), 16);
      sum.bytes += 2 * (n - 1) * c.bytes({r.begin + part.begin, r.begin + part.end});
    }
    return sum;
  }

  Settings settings_;
};

}  // namespace

std::unique_ptr<const ExchangeKind> all_reduce(OptionReader& options) {
  std::vector<std::string> names{"exact", "auto"};
  for (const Algorithm& a : all_reduce_algorithms()) names.emplace_back(a.name);
  Settings s;
  names.emplace_back("sparse");
  const std::string name = options.choice("algorithm", "exact", names);
  if (name == "auto") {  // few steps where latency counts, few bytes where they do
    s.algorithm = &ring_all_reduce;
    s.small_algorithm = &rabenseifner_all_reduce;
    s.switch_bytes = static_cast<std::size_t>(options.integer("switch_bytes", 256 << 10, 0, std::int64_t{1} << 40));
  } else if (name == "sparse") {
    s.may_switch = options.flag("switch", true);
    s.way = CodedSum::Way::doubling;
    return std::make_unique<Kind>(s);
  } else if (name != "exact" && std::ranges::find(names, name) != names.end()) {
    s.algorithm = &find_algorithm(name);
  }
  const std::string way = options.choice("way", "auto", {"auto", "gather", "owners", "doubling", "measured"});
  if (way == "gather") s.way = CodedSum::Way::gather;
  if (way == "owners") s.way = CodedSum::Way::owners;
  if (way == "doubling") s.way = CodedSum::Way::doubling;
  s.measured_way = way == "measured";
  return std::make_unique<Kind>(s);
}

}  // namespace echelon::exchanges
