#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/random.h"
#include "data/decorators.h"
#include "data/scratch.h"

namespace echelon::data {

namespace {

// From a beta distribution with both parameters alpha (Jöhnk 1964), in steps of 1 / 256: a last bit in which machines
// may differ is gone.
float share_of(const Stream& random, double alpha) {
  for (std::uint64_t attempt = 0; attempt < 64; ++attempt) {
    const double x = std::pow(static_cast<double>(random.uniform(10 + 2 * attempt)), 1 / alpha);
    const double y = std::pow(static_cast<double>(random.uniform(11 + 2 * attempt)), 1 / alpha);
    if (x + y > 0 && x + y <= 1) return static_cast<float>(std::floor(x / (x + y) * 256 + 0.5) / 256);
  }
  return 1;
}

class Mixed : public Dataset {
 public:
  Mixed(DatasetPtr inner, double alpha) : Dataset(inner->info()), inner_(std::move(inner)), alpha_(alpha) {
    if (!(alpha > 0 && alpha <= 100)) bad_input("mixup's alpha lies above 0 and at most at 100, not {}", alpha);
    for (const Field& f : fields()) {
      if (f.dtype != DType::f32 && f.shape.elements() != 1)
        bad_input("'mixup' adds samples up, but '{}' cannot be added", to_string(f));
      bytes_ += aligned(f.bytes());
    }
    info().random = true;
  }

  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    const Stream random({.seed = context.seed,
                         .step = context.epoch,
                         .shard = static_cast<std::uint32_t>(index),
                         .layer = stream_layer("data.mixup") + static_cast<std::uint32_t>(index >> 32)});
    const std::uint64_t wide = static_cast<std::uint64_t>(random.bits(0)) << 32 | random.bits(1);
    const auto other = static_cast<std::uint64_t>(static_cast<unsigned __int128>(wide) * size() >> 64);
    const float share = share_of(random, alpha_);
    inner_->get(index, context, out);
    Scratch memory(bytes_);
    std::array<std::byte*, most_fields> pointers{};
    std::byte* place = memory.data();
    for (std::size_t f = 0; f < fields().size(); ++f) pointers[f] = place, place += aligned(fields()[f].bytes());
    inner_->get(other, context, {pointers.data(), fields().size()});
    const bool take_other = random.uniform(2) >= share;
    for (std::size_t f = 0; f < fields().size(); ++f) {
      if (fields()[f].dtype != DType::f32) {
        if (take_other) std::memcpy(out[f], pointers[f], fields()[f].bytes());
        continue;
      }
      auto* mine = reinterpret_cast<float*>(out[f]);
      const auto* theirs = reinterpret_cast<const float*>(pointers[f]);
      for (std::int64_t i = 0; i < fields()[f].shape.elements(); ++i)
        mine[i] = theirs[i] + share * (mine[i] - theirs[i]);
    }
  }

  std::uint64_t origin(std::uint64_t index, const SampleContext& context) const override {
    return inner_->origin(index, context);
  }

 private:
  DatasetPtr inner_;
  double alpha_;
  std::size_t bytes_ = 0;
};

}  // namespace

DatasetPtr mixed_up(DatasetPtr inner, double alpha) { return std::make_shared<Mixed>(std::move(inner), alpha); }

}  // namespace echelon::data
