// Deep Gradient Compression's momentum correction (Lin et al. 2018): the momentum is taken at the sender, before
// anything is left out, so that what arrives late arrives with the velocity it would have had: u = m u + g, v = v + u,
// and v is what the inner codec gets; what it leaves out stays in v. Where a number was sent its velocity is stopped
// (momentum factor masking). The gradient is clipped by its norm first, at the sender: so that n of them together have
// the norm of `clip` if they point in all directions, each may have n^-1/2 of it. The receivers' own step has no
// momentum.

#include <cmath>

#include "base/error.h"
#include "codec/codecs.h"
#include "codec/wrappers/wrapper.h"
#include "kernels/reduce.h"

namespace echelon::codecs {

namespace {

class MomentumCorrection : public Wrapper {
 public:
  MomentumCorrection(std::unique_ptr<Codec> inner, std::size_t numbers, const MomentumSettings& settings)
      : Wrapper(std::move(inner)), settings_(settings), velocity_(numbers), residual_(numbers) {}
  Traits traits() const override {
    return {.sparse = inner_->traits().sparse, .momentum = true, .whole = settings_.clip > 0};
  }
  std::size_t encode(std::span<const float> values, const CodecStep& step, std::span<std::byte> out) override {
    invariant(values.size() == velocity_.size(), "a codec encodes the run that it was made for");
    float factor = 1;
    if (settings_.clip > 0) {
      const double norm = std::sqrt(kernels::squared_norm(values.data(), values.size()));
      const double limit = settings_.clip * std::sqrt(step.share) * step.share;  // the numbers have the share in them
      if (norm > limit) factor = static_cast<float>(limit / norm);
    }
    const auto momentum = static_cast<float>(settings_.momentum);
    float *u = velocity_.data(), *v = residual_.data();
    for (std::size_t i = 0; i < values.size(); ++i) {
      u[i] = momentum * u[i] + factor * values[i];
      v[i] += u[i];
    }
    const std::size_t bytes = inner_->encode_rest(residual_, step, out);
    if (settings_.masking && inner_->traits().sparse) inner_->clear_sent(out.first(bytes), velocity_);
    return bytes;
  }
  std::vector<State> state() override {
    std::vector<State> all = inner_->state();
    all.push_back({"velocity", std::as_writable_bytes(std::span(velocity_))});
    all.push_back({"residual", std::as_writable_bytes(std::span(residual_))});
    return all;
  }

 private:
  MomentumSettings settings_;
  std::vector<float> velocity_, residual_;
};

}  // namespace

std::unique_ptr<Codec> momentum_correction(std::unique_ptr<Codec> inner, std::size_t numbers,
                                           const MomentumSettings& settings) {
  return std::make_unique<MomentumCorrection>(std::move(inner), numbers, settings);
}

}  // namespace echelon::codecs
