#include "kernels/dropout.h"

#include "tests/kernels/simd_testing.h"

namespace echelon::kernels {
namespace {

const Stream streams[] = {Stream({}), Stream({.seed = ~0ull, .step = ~0u, .shard = ~0u, .layer = ~0u}),
                          Stream({.seed = 0x123456789abcdef0, .step = 7, .shard = 3, .layer = stream_layer("drop")})};

TEST(Dropout, EqualsTheScalarStreamBitForBit) {
  on_every_target([] {
    for (const Stream& stream : streams)
      for (const std::size_t n : odd_sizes) {
        const Fenced x = fenced_values(n, 1);
        for (const float p : {0.0f, 0.1f, 0.5f, 0.99f}) {
          Fenced got(n), want(n), in_place(x);
          dropout(stream, p, x.data(), got.data(), n);
          ref_dropout(stream, p, x.data(), want.data(), n);
          expect_same(got, want);
          dropout(stream, p, in_place.data(), in_place.data(), n);
          expect_same(in_place, want);
        }
      }
  });
}

TEST(Dropout, KeepsItsShareAndTheMean) {
  const std::size_t n = 200000;
  const Fenced x(n, 1);
  Fenced y(n);
  dropout(streams[2], 0.3f, x.data(), y.data(), n);
  double sum = 0, kept = 0;
  for (std::size_t i = 0; i < n; ++i) sum += y[i], kept += y[i] != 0;
  EXPECT_NEAR(kept / n, 0.7, 0.005);
  EXPECT_NEAR(sum / n, 1, 0.01);
}

TEST(Dropout, NoShareDroppedChangesNothing) {
  const Fenced x = fenced_values(77, 1);
  Fenced y(77);
  dropout(streams[0], 0, x.data(), y.data(), 77);
  expect_same(y, x);
}

TEST(Noise, EqualsTheStreamFromAnyOffset) {
  on_every_target([] {
    for (const Stream& stream : streams)
      for (const std::uint64_t offset : {0ull, 1ull, 2ull, 3ull, 4ull, 1001ull, (1ull << 34) - 6})
        for (const std::size_t n : std::vector<std::size_t>{0, 1, 2, 3, 5, 16, 17, 33, 100}) {
          Fenced got(n), want(n);
          fill_uniform(stream, offset, {got.data(), n});
          ref_fill_uniform(stream, offset, {want.data(), n});
          expect_same(got, want);
          fill_normal(stream, offset, {got.data(), n});
          ref_fill_normal(stream, offset, {want.data(), n});
          expect_same(got, want);
        }
  });
}

}  // namespace
}  // namespace echelon::kernels
