// Factors to everybody: all workers gather all workers' rows and do the same product, so that they get the same bits.
// What goes whole is summed in the fixed tree. Portions leave while backward still runs.

#include <algorithm>

#include "collective/lane.h"
#include "collective/shard_sum.h"
#include "kernels/vector.h"
#include "parallel/exchanges/factors.h"

namespace echelon::exchanges {

namespace {

constexpr double long_time = 1e9;          // seconds: the collectives inside have their own, shorter patience
constexpr std::size_t most_portions = 48;  // a lane takes 64 orders

class FactorBroadcast : public Exchange {
 public:
  FactorBroadcast(const FactorSettings& settings, ExchangeParts parts)
      : settings_(settings),
        parts_(std::move(parts)),
        worker_(parts_.rule->make_worker(parts_.view())),
        sum_(parts_.floats() * sizeof(float)),
        packed_(parts_.floats() * sizeof(float)),
        lane_(parts_.crew->group()) {
    for (const ThinProduct& p : parts_.trainer->thin_products()) layers_.push_back({.product = p});
    parts_.trainer->give_factors([this](const FactorSlice& slice) { return take(slice); });
    overlaps_ = parts_.order.kind != Order::Kind::whole;
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
    for (Layer& layer : layers_) place_rows(layer, moment.batch);
    for (auto& p : portions_) {
      p->whole.clear();
      std::size_t at = p->range.begin;
      for (const Layer* layer : p->layers) {
        if (!layer->as_factors) continue;
        if (layer->product.range.begin > at) p->whole.push_back({at, layer->product.range.begin});
        at = layer->product.range.end;
      }
      if (p->range.end > at) p->whole.push_back({at, p->range.end});
    }
    share_ = moment.share;
    if (overlaps_) start();
  }

  double exchange(const StepMoment& moment) override {
    if (!overlaps_) {
      start();
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
    for (const StateSpan& s : worker_->state()) all.push_back({"worker " + s.name, s.bytes});
    for (std::size_t i = 0; i < portions_.size(); ++i)
      if (portions_[i]->shared)
        for (const StateSpan& s : portions_[i]->shared->state())
          all.push_back({fmt::format("shared {} {}", i, s.name), s.bytes});
    all.push_back({"rounds", std::as_writable_bytes(std::span(&rounds_, 1))});
    return all;
  }

 private:
  struct Layer {
    ThinProduct product;
    bool as_factors = false;            // in this step
    std::vector<FactorRows> rows = {};  // by worker
    std::vector<Range> parts = {};      // the same as ranges of `values`
    Buffer values = {};
    Buffer scratch = {};
  };
  struct Portion {
    Range range;
    std::vector<Layer*> layers;          // within it
    std::vector<Range> whole;            // what goes as it is, in this step
    std::unique_ptr<SharedSide> shared;  // null if the mean is the answer
    std::unique_ptr<Event> ready;
    std::uint64_t times = 0;  // that it was started
    Pending pending;
  };

  void add_portion(Range range) {
    auto p = std::make_unique<Portion>();
    p->range = range;
    for (Layer& layer : layers_)  // a portion has whole parameters
      if (layer.product.range.begin >= range.begin && layer.product.range.end <= range.end) p->layers.push_back(&layer);
    std::ranges::sort(p->layers, {}, [](const Layer* layer) { return layer->product.range.begin; });
    if (!parts_.rule->traits().answers_mean) p->shared = parts_.rule->make_shared(parts_.place(range));
    p->ready = parts_.world->make_event();
    portions_.push_back(std::move(p));
  }

  void place_rows(Layer& layer, std::size_t batch) {
    const ThinProduct& p = layer.product;
    const int n = parts_.workers();
    layer.as_factors = n > 1 && (!settings_.hybrid || factors_are_smaller(p, batch, n, settings_.to));
    if (!layer.as_factors) return;
    layer.rows.clear(), layer.parts.clear();
    std::size_t at = 0;
    for (Rank r = 0; r < n; ++r) {
      const std::size_t rows = samples_of(r, n, batch) * p.rows;
      layer.rows.push_back({.rows = rows, .errors = at, .inputs = at + rows * p.out});
      layer.parts.push_back({at, at + rows * (p.out + p.in)});
      at = layer.parts.back().end;
    }
    if (layer.values.bytes() < at * sizeof(float)) layer.values = Buffer(at * sizeof(float));
  }

  // On the core that has computed them.
  bool take(const FactorSlice& slice) {
    Layer& layer = layers_[slice.product];
    if (!layer.as_factors) return false;
    const ThinProduct& p = layer.product;
    const FactorRows& mine = layer.rows[static_cast<std::size_t>(parts_.rank())];
    invariant(slice.first_row + slice.rows <= mine.rows, "a worker's samples are its part of the global batch");
    float* values = layer.values.as<float>().data();
    kernels::scale(values + mine.errors + slice.first_row * p.out, slice.errors, static_cast<float>(share_),
                   slice.rows * p.out);
    kernels::copy(values + mine.inputs + slice.first_row * p.in, slice.inputs, slice.rows * p.in);
    return true;
  }

  // The lane has all portions in order, and waits for each until it is there.
  void start() {
    for (auto& p : portions_) {
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
    const std::span<float> out = sum_.as<float>();
    for (Layer* layer : p.layers) {
      if (!layer->as_factors) continue;
      const std::span<float> values = layer->values.as<float>().first(layer->parts.back().end);
      all_gather(group, numbers(values), layer->parts, layer->product.name);
      multiply_factors(layer->product, layer->rows, values.data(), out.data() + layer->product.range.begin,
                       layer->scratch);
      parts_.world->compute(2.0 * static_cast<double>(layer->product.range.count()) *
                            static_cast<double>(others_rows(*layer)));
    }
    if (!p.whole.empty()) sum_whole(group, p, out);
  }

  std::size_t others_rows(const Layer& layer) const {  // of which nobody has said yet that they were multiplied
    std::size_t rows = 0;
    for (std::size_t r = 0; r < layer.rows.size(); ++r)
      if (static_cast<Rank>(r) != parts_.rank()) rows += layer.rows[r].rows;
    return rows;
  }

  void sum_whole(Group& group, Portion& p, std::span<float> out) {
    const std::span<float> packed = packed_.as<float>().subspan(p.range.begin, p.range.count());
    std::size_t count = 0;
    for (const Range& r : p.whole) {
      worker_->contribute(r, share_, packed.subspan(count, r.count()));
      count += r.count();
    }
    const PartialSum mine{parts_.rank(), parts_.rank() + 1, packed.data()};
    all_reduce_shards(group, {.shards = parts_.workers(), .partials = {&mine, 1}, .end = count, .out = packed.data()});
    count = 0;
    for (const Range& r : p.whole) {
      kernels::copy(out.data() + r.begin, packed.data() + count, r.count());
      count += r.count();
    }
  }

  void conclude(Portion& p, const StepMoment& moment) {
    const std::span<float> mean = sum_.as<float>().subspan(p.range.begin, p.range.count());
    if (!p.shared) return worker_->apply(p.range, mean);
    p.shared->conclude(mean, {.number = rounds_, .lr = moment.lr, .contributions = parts_.workers()});
    worker_->apply(p.range, p.shared->answer());
  }

  FactorSettings settings_;
  ExchangeParts parts_;
  std::unique_ptr<WorkerSide> worker_;
  Buffer sum_, packed_;
  std::vector<Layer> layers_;
  bool overlaps_ = false;
  std::vector<std::unique_ptr<Portion>> portions_;
  std::int64_t rounds_ = 0;
  double share_ = 1;
  Lane lane_;  // last: its task ends before what it uses
};

}  // namespace

std::unique_ptr<Exchange> make_factor_broadcast(const FactorSettings& settings, ExchangeParts parts) {
  return std::make_unique<FactorBroadcast>(settings, std::move(parts));
}

}  // namespace echelon::exchanges
