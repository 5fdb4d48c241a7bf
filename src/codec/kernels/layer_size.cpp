#include "codec/kernels/layer_size.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/kernels/layer_size.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::codecs::HWY_NAMESPACE {
namespace {

using namespace kernels::HWY_NAMESPACE;

HWY_FLATTEN double add_and_square(float* x, const float* more, std::size_t n) {
  return blocked_sum(n, [&](auto at) HWY_ATTR {
    const V sum = hn::Add(at.load(x), at.load(more));
    at.store(sum, x);
    return hn::Mul(sum, sum);
  });
}

}  // namespace
}  // namespace echelon::codecs::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace echelon::codecs {

HWY_EXPORT(add_and_square);

float add_and_size(std::span<float> x, const float* more) {
  return size_of(HWY_DYNAMIC_DISPATCH(add_and_square)(x.data(), more, x.size()), x.size());
}

}  // namespace echelon::codecs
#endif
