#include "codec/kernels/signs.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/kernels/signs.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::codecs::HWY_NAMESPACE {
namespace {

using namespace kernels::HWY_NAMESPACE;

// Sums of the numbers below and above zero, in the fixed order of kernels/reduce.h, and the bits, in one pass.
HWY_FLATTEN void pack(const float* x, std::uint8_t* bits, std::size_t n, double (&sums)[2]) {
  const V zero = hn::Zero(D());
  blocked_sums(
      n,
      [&](auto at, V(&v)[2]) HWY_ATTR {
        const V a = at.load(x);
        v[0] = hn::Min(zero, a);  // in this order a NaN comes through
        v[1] = hn::Max(zero, a);
        std::uint8_t mask[8];
        hn::StoreMaskBits(D(), hn::Ge(a, zero), mask);
        if constexpr (width == 8)
          bits[at.i / 8] = mask[0];
        else if (at.i % 8 == 0)
          bits[at.i / 8] = mask[0];
        else
          bits[at.i / 8] |= static_cast<std::uint8_t>(mask[0] << 4);
      },
      sums);
}

HWY_ALIGN constexpr std::uint32_t each[8] = {1, 2, 4, 8, 16, 32, 64, 128};

template <bool add>
HWY_INLINE void unpack(const std::uint8_t* bits, float negative, float positive, float* out, std::size_t n) {
  const V low = set(negative), high = set(positive);
  const hn::RebindToUnsigned<D> du;
  for_each_vector<4>(n, [&](auto at) HWY_ATTR {
    const auto byte = hn::Set(du, static_cast<std::uint32_t>(bits[at.i / 8]));
    const auto mask = hn::TestBit(byte, hn::Load(du, each + (width == 8 ? 0 : at.i % 8)));
    const V value = hn::IfThenElse(hn::RebindMask(D(), mask), high, low);
    at.store(add ? hn::Add(at.load(out), value) : value, out);
  });
}

HWY_FLATTEN void unpack_add(const std::uint8_t* bits, float low, float high, float* out, std::size_t n) {
  unpack<true>(bits, low, high, out, n);
}
HWY_FLATTEN void unpack_set(const std::uint8_t* bits, float low, float high, float* out, std::size_t n) {
  unpack<false>(bits, low, high, out, n);
}

}  // namespace
}  // namespace echelon::codecs::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <bit>

namespace echelon::codecs {

HWY_EXPORT(pack);
HWY_EXPORT(unpack_add);
HWY_EXPORT(unpack_set);

SignMeans pack_signs(std::span<const float> x, std::byte* bytes) {
  auto* bits = reinterpret_cast<std::uint8_t*>(bytes);
  double sums[2] = {};
  HWY_DYNAMIC_DISPATCH(pack)(x.data(), bits, x.size(), sums);
  const std::size_t whole = (x.size() + 7) / 8;
  if (x.size() % 8 != 0) bits[whole - 1] &= static_cast<std::uint8_t>((1u << (x.size() % 8)) - 1);
  std::size_t positive = 0, i = 0;
  for (; i + 8 <= whole; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bits + i, 8);
    positive += static_cast<std::size_t>(std::popcount(word));
  }
  for (; i < whole; ++i) positive += static_cast<std::size_t>(std::popcount(bits[i]));
  const auto mean = [](double sum, std::size_t count) {
    return count == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(count));
  };
  return {mean(sums[0], x.size() - positive), mean(sums[1], positive)};
}

void add_signs(const std::byte* bytes, SignMeans values, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(unpack_add)
  (reinterpret_cast<const std::uint8_t*>(bytes), values.negative, values.positive, out.data(), out.size());
}

void spread_signs(const std::byte* bytes, SignMeans values, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(unpack_set)
  (reinterpret_cast<const std::uint8_t*>(bytes), values.negative, values.positive, out.data(), out.size());
}

}  // namespace echelon::codecs
#endif
