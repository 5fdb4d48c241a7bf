// Contributions of several steps that leave as one push: the mean of the gradients, weighted by their rates, with the
// sum of the rates. It moves the model as far as its steps would have.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/vector.h"
#include "parallel/rules/common.h"
#include "parallel/server/budget.h"
#include "parallel/server/push_stage.h"

namespace echelon::exchanges {

namespace {

class CollectingStage : public PushStage {
 public:
  explicit CollectingStage(const PushParts& parts)
      : worker_(parts.worker),
        keys_(parts.keys.begin(), parts.keys.end()),
        numbers_(largest_key(parts.keys) * sizeof(float)),
        collected_(rules::zeros(parts.parts.floats())),
        rates_(keys_.size()) {}

  void collect(const StepInfo& info) override {
    const double rate = info.lr * info.share;
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      const std::span<float> out = numbers_.as<float>().first(keys_[k].range.count());
      worker_.contribute(keys_[k].range, rate, out);
      kernels::add_into(collected(k).data(), out.data(), out.size());
      rates_[k] += rate;
    }
  }
  void left_over(std::vector<std::uint32_t>& keys) override {
    for (std::uint32_t k = 0; k < keys_.size(); ++k)
      if (rates_[k] > 0) keys.push_back(k);
  }
  void process(Push& push) override {
    double& rate = rates_[push.key];
    const std::span<float> out = numbers_.as<float>().first(push.range.count()), values = collected(push.key);
    kernels::scale(out.data(), values.data(), static_cast<float>(rate > 0 ? 1 / rate : 0), out.size());
    std::ranges::fill(values, 0.0f);
    push.rate = std::exchange(rate, 0);
    push.set(out);
  }

 protected:
  std::span<const Key> keys() const { return keys_; }
  std::span<float> collected(std::size_t key) {
    return collected_.as<float>().subspan(keys_[key].range.begin, keys_[key].range.count());
  }

 private:
  WorkerSide& worker_;
  std::vector<Key> keys_;
  Buffer numbers_;             // scratch
  Buffer collected_;           // gradients times their rates that have not been pushed
  std::vector<double> rates_;  // by key: the sum of these rates
};

// All keys in every n_push-th step. With a cache each key has its own turn among n_push steps, so that traffic is even,
// and one that nothing has changed stays where it is.
class MergeStage : public CollectingStage {
 public:
  explicit MergeStage(const PushParts& parts)
      : CollectingStage(parts), n_push_(parts.parts.when.n_push), cache_(parts.settings.cache) {}
  void choose(std::vector<std::uint32_t>& keys) override {
    ++steps_;
    if (!cache_ && steps_ % n_push_ != 0) keys.clear();
    if (cache_) std::erase_if(keys, [&](std::uint32_t k) { return (steps_ + k) % n_push_ != 0 || !has_changed(k); });
  }
  std::vector<StateSpan> state() override { return {as_state("merged steps", steps_)}; }

 private:
  bool has_changed(std::uint32_t key) {
    return std::ranges::any_of(collected(key), [](float change) { return change != 0; });
  }

  std::int64_t n_push_, steps_ = 0;
  bool cache_;
};

// How much a slice matters: the size of its change relative to that of its weights. There is room for as many bytes as
// the order's share of the measured link has carried since the last step.
class BudgetStage : public CollectingStage {
 public:
  BudgetStage(const PushParts& parts, std::int64_t staleness)
      : CollectingStage(parts),
        world_(*parts.parts.world),
        weights_(parts.parts.view().weights),
        slice_bytes_(static_cast<double>(largest_key(parts.keys) * sizeof(float) + Mailbox::header_bytes)),
        budget_(parts.keys.size(), staleness),
        room_(parts.parts.order.rate * parts.bandwidth, static_cast<double>(parts.keys.size()) * slice_bytes_),
        significance_(parts.keys.size()) {}
  void choose(std::vector<std::uint32_t>& keys) override {
    for (std::size_t k = 0; k < significance_.size(); ++k) {
      const std::span<const float> change = collected(k);
      const std::span<const float> weights = weights_.subspan(this->keys()[k].range.begin, change.size());
      float changes = 0, sizes = 1e-12f;
      for (std::size_t i = 0; i < change.size(); ++i) changes += std::abs(change[i]), sizes += std::abs(weights[i]);
      const float share = changes / sizes;
      significance_[k] = std::isfinite(share) ? share : std::numeric_limits<float>::max();  // it is compared
    }
    room_.advance(world_.now());
    keys = budget_.choose(significance_, static_cast<std::size_t>(std::max(0.0, room_.bytes() / slice_bytes_)));
    room_.spend(static_cast<double>(keys.size()) * slice_bytes_);
  }
  void left_over(std::vector<std::uint32_t>& keys) override {
    CollectingStage::left_over(keys);
    room_.stop();
  }
  std::vector<StateSpan> state() override {
    return {as_state("waits", budget_.waits()), as_state("room", room_.bytes())};
  }

 private:
  World& world_;
  std::span<const float> weights_;
  double slice_bytes_;
  SliceBudget budget_;
  ByteBudget room_;
  std::vector<float> significance_;  // by key
};

}  // namespace

std::unique_ptr<PushStage> merge_stage(const PushParts& parts) { return std::make_unique<MergeStage>(parts); }

std::unique_ptr<PushStage> budget_stage(const PushParts& parts) {
  const std::optional<std::int64_t> staleness = parts.parts.sync->staleness();
  invariant(staleness.has_value(), "order magnitude goes with a sync that bounds staleness");
  return std::make_unique<BudgetStage>(parts, *staleness);
}

}  // namespace echelon::exchanges
