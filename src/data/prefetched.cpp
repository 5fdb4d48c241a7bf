#include <atomic>
#include <cstring>

#include "base/error.h"
#include "data/decorators.h"
#include "world/os/ahead.h"

namespace echelon::data {

namespace {

class Prefetched : public Dataset {
 public:
  Prefetched(DatasetPtr inner, int depth) : Dataset(inner->info()), inner_(std::move(inner)), depth_(depth) {
    if (depth < 0) bad_input("reading ahead by {} samples is not possible", depth);
    for (std::size_t i = 0; i < Ahead::slots(depth); ++i) slots_.emplace_back(fields());
  }

  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    // One caller at a time has the use of the ring; whoever finds it taken reads for himself.
    if (depth_ == 0 || taken_.test_and_set(std::memory_order_acquire)) return inner_->get(index, context, out);
    struct Release {
      std::atomic_flag& flag;
      ~Release() { flag.clear(std::memory_order_release); }
    } release{taken_};
    if (!ahead_ || context.seed != context_.seed || context.epoch != context_.epoch) start(index, context);
    Sample& sample = slots_[ahead_->take(index)];
    for (std::size_t f = 0; f < out.size(); ++f) std::memcpy(out[f], sample.ref()[f], fields()[f].bytes());
  }
  std::uint64_t origin(std::uint64_t index, const SampleContext& context) const override {
    return inner_->origin(index, context);
  }

 private:
  void start(std::uint64_t first, const SampleContext& context) const {
    ahead_.reset();  // waits for the last of the old ones: they read context_
    context_ = context;
    ahead_ =
        std::make_unique<Ahead>(Ahead::Options{.name = "prefetch", .depth = depth_, .first = first},
                                [this](std::uint64_t number, std::size_t slot) {
                                  if (number < size())
                                    inner_->get(number, context_, slots_[slot].ref());  // past the end there is nothing
                                });
  }

  DatasetPtr inner_;
  int depth_;
  mutable std::vector<Sample> slots_;
  mutable std::atomic_flag taken_;
  mutable SampleContext context_;
  mutable std::unique_ptr<Ahead> ahead_;  // last: stops before what it uses goes away
};

}  // namespace

DatasetPtr prefetched(DatasetPtr inner, int depth) { return std::make_shared<Prefetched>(std::move(inner), depth); }

}  // namespace echelon::data
