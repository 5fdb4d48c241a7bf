#include "codec/codec.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "kernels/vector.h"

namespace echelon {

void Codec::accepts(const CodecUse& use, Problems& problems) const {
  if (use.weights && !traits().weights)
    problems.add(
        {},
        fmt::format("codec {} is too coarse for weights, which is what rule {} sends: {}, or {}a rule that "
                    "sends changes (param_mean, sma, grad_mean)",
                    use.codec, use.rule, use.candidate ? "leave it out of codec.candidates" : "take codec fp16 or none",
                    use.candidate ? "take " : ""));
  if (use.in_parts && traits().whole)
    problems.add({}, fmt::format("codec {} clips by the norm of the whole gradient, which is encoded in parts here: {}",
                                 use.codec, "take exchange all_reduce with order whole, or set codec.clip=0"));
  if (use.optimizer_has_momentum && traits().momentum)
    problems.add({}, fmt::format("codec {} has {} momentum in it, and the optimizer has one too: {}", use.codec,
                                 use.candidate ? "a" : "the",
                                 use.candidate ? "leave it out of codec.candidates, or take optim.name sgd"
                                               : "take optim.name sgd, or set codec.momentum=0"));
}

std::size_t Codec::encode_rest(std::span<float> values, const CodecStep& step, std::span<std::byte> out) {
  const std::size_t bytes = encode(values, step, out);
  add(out.first(bytes), -1, values);
  return bytes;
}

std::size_t Codec::encode_sum(std::span<float> values, std::span<const float> more, const CodecStep& step,
                              std::span<std::byte> out) {
  invariant(values.size() == more.size(), "sums are of as many numbers");
  kernels::add_into(values.data(), more.data(), more.size());
  return encode_rest(values, step, out);
}

void Codec::decode(std::span<const std::byte> bytes, std::span<float> out) const {
  std::ranges::fill(out, 0.0f);
  add(bytes, 1, out);
}

void Codec::clear_sent(std::span<const std::byte> bytes, std::span<float> out) const {
  if (!traits().sparse)
    std::ranges::fill(out, 0.0f);
  else
    each_sent(bytes, [&](std::size_t i, float) { out[i] = 0; });
}

std::span<float> Codec::first_round(std::span<const float>) {
  invariant(false, "encodings that cannot be summed have no rounds");
  return {};
}
std::span<float> Codec::second_round(std::span<float>) { return first_round({}); }
void Codec::decode_rounds(std::span<float>) { first_round({}); }

void Codec::each_sent(std::span<const std::byte>, const Sent&) const {
  invariant(false, "codecs that are not sparse send every number");
}

}  // namespace echelon
