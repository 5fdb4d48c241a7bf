// Factors to the owner: every worker is the server for some whole parameters. It gets the other workers' factors (or
// gradients), does the product, concludes, and all gather the answers: as owner_shard, but a fully connected layer's
// gradient exists only where it is used (Project Adam).

#include <algorithm>

#include "collective/collectives.h"
#include "kernels/vector.h"
#include "parallel/exchanges/factors.h"

namespace echelon::exchanges {

namespace {

class FactorOwners : public Exchange {
 public:
  FactorOwners(const FactorSettings& settings, ExchangeParts parts)
      : settings_(settings),
        parts_(std::move(parts)),
        owned_(owners_of_parameters(offsets_in(parts_.trainer->table()), parts_.floats(), parts_.workers())),
        own_(owned_[static_cast<std::size_t>(parts_.rank())]),
        worker_(parts_.rule->make_worker(parts_.view())),
        shared_(parts_.rule->make_shared(parts_.place(own_))),
        values_(parts_.floats() * sizeof(float)) {
    for (const ThinProduct& p : parts_.trainer->thin_products()) {
      Layer layer{.product = p};
      while (owned_[static_cast<std::size_t>(layer.owner)].end <= p.range.begin) ++layer.owner;
      layers_.push_back(layer);
    }
    std::vector<std::size_t> order(layers_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [&](std::size_t i) { return layers_[i].product.range.begin; });
    in_order_ = order;
    parts_.trainer->give_factors([this](const FactorSlice& slice) { return take(slice); });
  }

  void before_step(const StepMoment& moment) override {
    const int n = parts_.workers();
    for (Layer& l : layers_)
      l.as_factors = n > 1 && (!settings_.hybrid || factors_are_smaller(l.product, moment.batch, n, settings_.to));
    share_ = moment.share;
    out_.clear(), in_.clear();
    std::size_t out = 0, in = 0;
    for (Rank r = 0; r < n; ++r) {
      const std::size_t to_owner = letter_size(r, samples_of(parts_.rank(), n, moment.batch), out);
      out_.push_back({out, out + to_owner});
      out += to_owner;
    }
    rows_.assign(layers_.size() * static_cast<std::size_t>(n), {});
    for (Rank r = 0; r < n; ++r) {
      const std::size_t from_worker = arriving_size(r, samples_of(r, n, moment.batch), in);
      in_.push_back({in, in + from_worker});
      in += from_worker;
    }
    if (sent_.bytes() < out * sizeof(float)) sent_ = Buffer(out * sizeof(float));
    if (came_.bytes() < in * sizeof(float)) came_ = Buffer(in * sizeof(float));
  }

  double exchange(const StepMoment& moment) override {
    Group& group = parts_.crew->group();
    for (Rank r = 0; r < parts_.workers(); ++r) {
      std::size_t at = out_[static_cast<std::size_t>(r)].begin;
      for_each_piece(r, [&](Range range, const Layer* layer) {
        if (layer) return void(at += rows_here(*layer) * (layer->product.out + layer->product.in));
        worker_->contribute(range, share_, sent_.as<float>().subspan(at, range.count()));
        at += range.count();
      });
    }
    all_to_all(group, const_numbers(std::span<const float>(sent_.as<float>())), out_, numbers(came_.as<float>()), in_,
               "factors and gradients");
    const std::span<float> values = values_.as<float>(), mean = values.subspan(own_.begin, own_.count());
    sum_up(values);
    shared_->conclude(mean, {.number = ++rounds_, .lr = moment.lr, .contributions = parts_.workers()});
    std::ranges::copy(shared_->answer(), mean.begin());
    all_gather(group, numbers(values), owned_, "answers of the owners");
    worker_->apply({0, values.size()}, values);
    return parts_.rule->traits().local_step ? 1 : 0;
  }

  void settle() override {}

  void read_model(std::span<float> out) override {
    std::ranges::copy(shared_->model(), out.begin() + static_cast<std::ptrdiff_t>(own_.begin));
    all_gather(parts_.crew->group(), numbers(out), owned_, "the owners' model");
  }

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    for (const StateSpan& s : worker_->state()) all.push_back({"worker " + s.name, s.bytes});
    for (const StateSpan& s : shared_->state()) all.push_back({"owned " + s.name, s.bytes});
    all.push_back({"rounds", std::as_writable_bytes(std::span(&rounds_, 1))});
    return all;
  }

 private:
  struct Layer {
    ThinProduct product;
    Rank owner = 0;
    bool as_factors = false;  // in this step
    FactorRows mine = {};     // in `sent_`
  };

  // f(range, layer) for what a worker sends to the owner r, in order: a layer's factors, or (null) plain numbers.
  template <typename F>
  void for_each_piece(Rank r, const F& f) const {
    const Range owned = owned_[static_cast<std::size_t>(r)];
    std::size_t at = owned.begin;
    for (std::size_t i : in_order_) {
      const Layer& layer = layers_[i];
      if (layer.owner != r || !layer.as_factors) continue;
      if (layer.product.range.begin > at) f(Range{at, layer.product.range.begin}, nullptr);
      f(layer.product.range, &layer);
      at = layer.product.range.end;
    }
    if (owned.end > at) f(Range{at, owned.end}, nullptr);
  }

  // Floats from here to the owner r; notes where this worker's rows go.
  std::size_t letter_size(Rank r, std::size_t samples, std::size_t begin) {
    std::size_t at = begin;
    for_each_piece(r, [&](Range range, const Layer* layer) {
      if (!layer) return void(at += range.count());
      const ThinProduct& p = layer->product;
      const std::size_t rows = samples * p.rows;
      layers_[static_cast<std::size_t>(layer - layers_.data())].mine = {
          .rows = rows, .errors = at, .inputs = at + rows * p.out};
      at += rows * (p.out + p.in);
    });
    return at - begin;
  }

  // Floats from worker r to here; notes where its rows will lie.
  std::size_t arriving_size(Rank r, std::size_t samples, std::size_t begin) {
    std::size_t at = begin;
    for_each_piece(parts_.rank(), [&](Range range, const Layer* layer) {
      if (!layer) return void(at += range.count());
      const ThinProduct& p = layer->product;
      const std::size_t rows = samples * p.rows;
      rows_of(*layer)[static_cast<std::size_t>(r)] = {.rows = rows, .errors = at, .inputs = at + rows * p.out};
      at += rows * (p.out + p.in);
    });
    return at - begin;
  }

  std::span<FactorRows> rows_of(const Layer& layer) {
    const auto n = static_cast<std::size_t>(parts_.workers());
    return std::span(rows_).subspan(static_cast<std::size_t>(&layer - layers_.data()) * n, n);
  }
  static std::size_t rows_here(const Layer& layer) { return layer.mine.rows; }

  // On the core that has computed them.
  bool take(const FactorSlice& slice) {
    Layer& layer = layers_[slice.product];
    if (!layer.as_factors) return false;
    const ThinProduct& p = layer.product;
    invariant(slice.first_row + slice.rows <= layer.mine.rows, "a worker's samples are its part of the global batch");
    float* sent = sent_.as<float>().data();
    kernels::scale(sent + layer.mine.errors + slice.first_row * p.out, slice.errors, static_cast<float>(share_),
                   slice.rows * p.out);
    kernels::copy(sent + layer.mine.inputs + slice.first_row * p.in, slice.inputs, slice.rows * p.in);
    return true;
  }

  // values[own] = the sum over workers, in their order.
  void sum_up(std::span<float> values) {
    const float* came = came_.as<float>().data();
    for (Rank r = 0; r < parts_.workers(); ++r) {
      std::size_t at = in_[static_cast<std::size_t>(r)].begin;
      for_each_piece(parts_.rank(), [&](Range range, const Layer* layer) {
        if (layer)
          return void(at +=
                      rows_of(*layer)[static_cast<std::size_t>(r)].rows * (layer->product.out + layer->product.in));
        float* out = values.data() + range.begin;
        if (r == 0)
          kernels::copy(out, came + at, range.count());
        else
          kernels::add(out, out, came + at, range.count());
        at += range.count();
      });
    }
    for_each_piece(parts_.rank(), [&](Range range, const Layer* layer) {
      if (!layer) return;
      multiply_factors(layer->product, rows_of(*layer), came, values.data() + range.begin, scratch_);
      double rows = 0;
      for (const FactorRows& r : rows_of(*layer)) rows += static_cast<double>(r.rows);
      parts_.world->compute(2 * rows * static_cast<double>(range.count()));
    });
  }

  FactorSettings settings_;
  ExchangeParts parts_;
  std::vector<Range> owned_;  // by worker
  Range own_;
  std::unique_ptr<WorkerSide> worker_;
  std::unique_ptr<SharedSide> shared_;
  Buffer values_, sent_, came_, scratch_;
  std::vector<Layer> layers_;
  std::vector<std::size_t> in_order_;  // layers by their place in the model
  std::vector<FactorRows> rows_;       // of own layers in `came_`, by layer and worker
  std::vector<Range> out_, in_;        // by worker
  double share_ = 1;
  std::int64_t rounds_ = 0;
};

}  // namespace

std::unique_ptr<Exchange> make_factor_owners(const FactorSettings& settings, ExchangeParts parts) {
  return std::make_unique<FactorOwners>(settings, std::move(parts));
}

}  // namespace echelon::exchanges
