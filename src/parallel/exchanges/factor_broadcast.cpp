// Factors to all: all workers gather all workers' rows and do the same product, so that they get the same bits.
// What goes whole is summed in the fixed tree. Buckets leave while backward still runs.
//
// With `servers` every worker is the server of its part of what goes whole: it alone has the optimizer's state for it,
// takes the step, and sends the others its new weights (Poseidon). For a layer that goes as factors every worker has
// the state and takes the same step. Which layers do is then decided once, by the run's usual batch.

#include <algorithm>

#include "collective/collectives.h"
#include "collective/shard_sum.h"
#include "kernels/vector.h"
#include "parallel/exchanges/bucket_sums.h"
#include "parallel/exchanges/factors.h"

namespace echelon::exchanges {

namespace {

class FactorBroadcast : public Exchange {
 public:
  FactorBroadcast(const FactorSettings& settings, ExchangeParts parts)
      : settings_(settings),
        parts_(std::move(parts)),
        worker_(parts_.rule->make_worker(parts_.view())),
        packed_(parts_.floats() * sizeof(float)),
        buckets_(
            parts_, *worker_, [this](Group& g, std::size_t i, std::span<float> out) { sum(g, i, out); },
            settings.servers) {
    for (const ThinProduct& p : parts_.trainer->thin_products())
      layers_.push_back({.product = p, .as_factors = goes_as_factors(p, parts_.batch)});
    parts_.trainer->hooks().take_factors = [this](const ShardFactors& factors) { return take(factors); };
    for (std::size_t i = 0; i < buckets_.count(); ++i) contents_.push_back(contents_of(buckets_.range(i)));
    if (settings_.servers) make_servers();
  }

  void before_step(const StepInfo& info) override {
    for (Layer& layer : layers_) {
      if (!settings_.servers) layer.as_factors = goes_as_factors(layer.product, info.batch);
      place_rows(layer, info.batch);
    }
    if (!settings_.servers)
      for (std::size_t i = 0; i < contents_.size(); ++i) find_whole(contents_[i], buckets_.range(i));
    share_ = info.share, lr_ = info.lr;
    buckets_.begin_step();
  }

  double exchange(const StepInfo& info) override {
    buckets_.conclude(info);
    return parts_.rule->traits().local_step ? 1 : 0;
  }

  void drain() override {}
  void read_model(std::span<float> out) override {
    if (settings_.servers)  // every worker has all servers' answers
      std::ranges::copy(parts_.trainer->parameters(), out.begin());
    else
      buckets_.read_model(out);
  }

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    add_states(all, "worker ", worker_->state());
    add_states(all, "", buckets_.state());
    for (Layer& layer : layers_)
      if (layer.shared) add_states(all, layer.product.name + " ", layer.shared->state());
    for (Contents& c : contents_)
      for (ServedPiece& s : c.served) add_states(all, fmt::format("served {} ", s.range.begin), s.shared->state());
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
    std::unique_ptr<SharedSide> shared = {};  // with servers, if it goes as factors
  };
  struct ServedPiece {  // of what goes whole: this worker is its server
    Range range, packed;
    std::unique_ptr<SharedSide> shared;
  };
  struct Contents {                        // of a bucket
    std::vector<Layer*> layers;            // within it
    std::vector<Range> whole = {};         // what goes as it is, in this step
    std::vector<ServedPiece> served = {};  // with servers
  };

  bool goes_as_factors(const ThinProduct& p, std::size_t batch) const {
    return parts_.workers() > 1 && (!settings_.hybrid || factors_are_smaller_for_all(p, batch));
  }

  static void find_whole(Contents& c, Range range) {
    c.whole.clear();
    std::size_t at = range.begin;
    for (const Layer* layer : c.layers) {
      if (!layer->as_factors) continue;
      if (layer->product.range.begin > at) c.whole.push_back({at, layer->product.range.begin});
      at = layer->product.range.end;
    }
    if (range.end > at) c.whole.push_back({at, range.end});
  }

  void make_servers() {
    for (Layer& layer : layers_)
      if (layer.as_factors) layer.shared = parts_.rule->make_shared(parts_.place(layer.product.range));
    for (std::size_t i = 0; i < contents_.size(); ++i) {
      Contents& c = contents_[i];
      find_whole(c, buckets_.range(i));
      std::size_t count = 0, at = 0;
      for (const Range& r : c.whole) count += r.count();
      const Range own = owned(parts_.rank(), parts_.workers(), 0, count);
      for (const Range& r : c.whole) {  // at `at` of what is packed
        const std::size_t begin = std::max(own.begin, at), end = std::min(own.end, at + r.count());
        if (begin < end) {
          const Range range{r.begin + (begin - at), r.begin + (end - at)};
          c.served.push_back({range, {begin, end}, parts_.rule->make_shared(parts_.place(range))});
        }
        at += r.count();
      }
    }
  }

  Contents contents_of(Range range) {
    Contents c;
    for (Layer& layer : layers_)  // a bucket has whole parameters
      if (layer.product.range.begin >= range.begin && layer.product.range.end <= range.end) c.layers.push_back(&layer);
    std::ranges::sort(c.layers, {}, [](const Layer* layer) { return layer->product.range.begin; });
    return c;
  }

  void place_rows(Layer& layer, std::size_t batch) {
    const ThinProduct& p = layer.product;
    const int n = parts_.workers();
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
  bool take(const ShardFactors& factors) {
    Layer& layer = layers_[factors.product];
    if (!layer.as_factors) return false;
    const ThinProduct& p = layer.product;
    const FactorRows& mine = layer.rows[static_cast<std::size_t>(parts_.rank())];
    invariant(factors.first_row + factors.rows <= mine.rows, "a worker's samples are its part of the global batch");
    float* values = layer.values.as<float>().data();
    kernels::scale(values + mine.errors + factors.first_row * p.out, factors.errors, static_cast<float>(share_),
                   factors.rows * p.out);
    kernels::copy(values + mine.inputs + factors.first_row * p.in, factors.inputs, factors.rows * p.in);
    return true;
  }

  // In the buckets' task.
  void sum(Group& group, std::size_t bucket, std::span<float> out) {
    const std::size_t begin = buckets_.range(bucket).begin;
    const Contents& c = contents_[bucket];
    for (Layer* layer : c.layers) {
      if (!layer->as_factors) continue;
      const std::span<float> values = layer->values.as<float>().first(layer->parts.back().end);
      all_gather(group, typed_span(values), layer->parts, layer->product.name);
      multiply_factors(layer->product, layer->rows, values.data(), out.data() + (layer->product.range.begin - begin),
                       layer->scratch);
      const std::size_t rows = layer->parts.back().end / (layer->product.out + layer->product.in);
      parts_.world->compute(2.0 * static_cast<double>(layer->product.range.count()) * static_cast<double>(rows));
      if (!layer->shared) continue;
      const std::span<float> part = out.subspan(layer->product.range.begin - begin, layer->product.range.count());
      layer->shared->conclude(part, lr_);
      std::ranges::copy(layer->shared->answer(), part.begin());
    }
    if (!c.whole.empty()) sum_whole(group, bucket, out);
  }

  // Every worker's part to its server, which steps; its answer to all.
  void serve(Group& group, std::span<float> packed, std::span<ServedPiece> served) {
    const PartialSum mine{parts_.rank(), parts_.rank() + 1, packed.data()};
    reduce_scatter_shards(
        group, {.shards = parts_.workers(), .partials = {&mine, 1}, .end = packed.size(), .out = packed.data()});
    for (ServedPiece& s : served) {
      const std::span<float> part = packed.subspan(s.packed.begin, s.packed.count());
      s.shared->conclude(part, lr_);
      std::ranges::copy(s.shared->answer(), part.begin());
    }
    all_gather_owned(group, packed.data(), 0, packed.size());
  }

  void sum_whole(Group& group, std::size_t index, std::span<float> out) {
    const Range bucket = buckets_.range(index);
    const std::vector<Range>& whole = contents_[index].whole;
    const std::span<float> packed = packed_.as<float>().subspan(bucket.begin, bucket.count());
    std::size_t count = 0;
    for (const Range& r : whole) {
      worker_->contribute(r, share_, packed.subspan(count, r.count()));
      count += r.count();
    }
    if (settings_.servers)
      serve(group, packed.first(count), contents_[index].served);
    else
      all_reduce_members(group, packed.first(count));
    count = 0;
    for (const Range& r : whole) {
      kernels::copy(out.data() + (r.begin - bucket.begin), packed.data() + count, r.count());
      count += r.count();
    }
  }

  FactorSettings settings_;
  ExchangeParts parts_;
  std::unique_ptr<WorkerSide> worker_;
  Buffer packed_;
  std::vector<Layer> layers_;
  std::vector<Contents> contents_;  // by bucket
  double share_ = 1, lr_ = 0;
  BucketSums buckets_;  // last
};

}  // namespace

std::unique_ptr<Exchange> make_factor_broadcast(const FactorSettings& settings, ExchangeParts parts) {
  return std::make_unique<FactorBroadcast>(settings, std::move(parts));
}

}  // namespace echelon::exchanges
