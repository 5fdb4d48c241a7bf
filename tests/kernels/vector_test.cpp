#include "kernels/vector.h"

#include <limits>
#include <utility>

#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

TEST(Vector, EveryOperationGivesTheReferencesBits) {
  on_every_target([] {
    for (const std::size_t n : odd_sizes) {
      const Fenced a = fenced_values(n, 1), b = fenced_values(n, 2);
      Fenced got(n), want(n);

      add(got.data(), a.data(), b.data(), n);
      ref_add(want.data(), a.data(), b.data(), n);
      expect_same(got, want);

      scale(got.data(), a.data(), 0.3f, n);
      ref_scale(want.data(), a.data(), 0.3f, n);
      expect_same(got, want);

      axpy(got.data(), -0.7f, b.data(), n);
      ref_axpy(want.data(), -0.7f, b.data(), n);
      expect_same(got, want);

      lerp(got.data(), a.data(), b.data(), 0.3f, n);
      ref_lerp(want.data(), a.data(), b.data(), 0.3f, n);
      expect_same(got, want);
    }
  });
}

TEST(Vector, OneNumberThatIsNotFiniteIsFoundWhereverItStands) {
  on_every_target([] {
    for (const std::size_t n : odd_sizes) {
      Fenced x = fenced_values(n, 1);
      EXPECT_TRUE(all_finite(x.data(), n));
      for (std::size_t i = 0; i < n; i += 1 + n / 7)
        for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
          const float was = std::exchange(x.data()[i], bad);
          EXPECT_FALSE(all_finite(x.data(), n)) << i << " of " << n;
          EXPECT_FALSE(ref_all_finite(x.data(), n));
          x.data()[i] = was;
        }
      EXPECT_TRUE(ref_all_finite(x.data(), n));
    }
  });
}

TEST(Vector, InPlaceFillAndCopy) {
  for (const std::size_t n : odd_sizes) {
    Fenced a = fenced_values(n, 1), want(n), sum(n, 5), copied(n);
    const Fenced b = fenced_values(n, 2);
    ref_add(want.data(), a.data(), b.data(), n);
    copy(copied.data(), a.data(), n);
    expect_same(copied, a);
    add_into(a.data(), b.data(), n);
    expect_same(a, want);

    fill(sum.data(), 2, n);
    expect_same(sum, Fenced(n, 2));
  }
}

}  // namespace
}  // namespace echelon::kernels
