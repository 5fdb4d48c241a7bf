#include "base/error.h"
#include "codec/codecs.h"
#include "codec/wrappers/wrapper.h"
#include "kernels/vector.h"

namespace echelon::codecs {

namespace {

class ErrorFeedback : public Wrapper {
 public:
  ErrorFeedback(std::unique_ptr<Codec> inner, std::size_t numbers) : Wrapper(std::move(inner)), residual_(numbers) {}
  // Over time nothing is lost, but a single call's expectation is no longer its input.
  Traits traits() const override {
    Traits traits = inner_->traits();
    traits.unbiased = traits.lossless;
    return traits;
  }
  std::size_t encode(std::span<const float> values, const CodecStep& step, std::span<std::byte> out) override {
    invariant(values.size() == residual_.size(), "a codec encodes the run that it was made for");
    return inner_->encode_sum(residual_, values, step, out);
  }
  Rounds rounds() const override { return inner_->rounds(); }
  std::span<float> first_round(std::span<const float> values) override {
    invariant(values.size() == residual_.size(), "a codec encodes the run that it was made for");
    kernels::add_into(residual_.data(), values.data(), values.size());
    return inner_->first_round(residual_);
  }
  std::span<float> second_round(std::span<float>) override { return inner_->second_round(residual_); }
  void decode_rounds(std::span<float> out) override { inner_->decode_rounds(out); }
  std::vector<State> state() override {
    std::vector<State> all = inner_->state();
    all.push_back({"residual", std::as_writable_bytes(std::span(residual_))});
    return all;
  }

 private:
  std::vector<float> residual_;  // what has not been sent yet
};

}  // namespace

std::unique_ptr<Codec> error_feedback(std::unique_ptr<Codec> inner, std::size_t numbers) {
  return std::make_unique<ErrorFeedback>(std::move(inner), numbers);
}

}  // namespace echelon::codecs
