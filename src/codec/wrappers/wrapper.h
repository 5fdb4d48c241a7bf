#pragma once
// A codec around another one: everything is the inner codec's, unless the wrapper does it otherwise.

#include <memory>
#include <utility>

#include "codec/codec.h"

namespace echelon::codecs {

class Wrapper : public Codec {
 public:
  explicit Wrapper(std::unique_ptr<Codec> inner) : inner_(std::move(inner)) {}
  Traits traits() const override { return inner_->traits(); }
  std::size_t most_bytes() const override { return inner_->most_bytes(); }
  bool same_size_always() const override { return inner_->same_size_always(); }
  double usual_bytes() const override { return inner_->usual_bytes(); }
  void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const override {
    inner_->add(bytes, scale, out);
  }
  void decode(std::span<const std::byte> bytes, std::span<float> out) const override { inner_->decode(bytes, out); }
  void each_sent(std::span<const std::byte> bytes, const Sent& f) const override { inner_->each_sent(bytes, f); }
  std::vector<State> state() override { return inner_->state(); }

 protected:
  std::unique_ptr<Codec> inner_;
};

}  // namespace echelon::codecs
