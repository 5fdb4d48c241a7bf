#include "kernels/conv/unshared_conv.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "tensor/buffer.h"

namespace echelon::kernels {
namespace {

std::vector<float> some_numbers(std::int64_t count, std::uint32_t which) {
  const Stream s({.seed = 7, .shard = which});
  std::vector<float> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = s.normal(i);
  return v;
}

void expect_near_all(const std::vector<float>& got, const std::vector<float>& wanted) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(got[i], wanted[i], 1e-4 * (1 + std::abs(wanted[i]))) << "element " << i;
}

TEST(UnsharedConv, AgreesWithItsReference) {
  for (const UnsharedConvShape& s :
       {UnsharedConvShape{.n = 3, .c = 2, .h = 5, .w = 7, .out_c = 4, .kh = 3, .kw = 2},
        UnsharedConvShape{.n = 1, .c = 1, .h = 1, .w = 1},
        UnsharedConvShape{
            .n = 5, .c = 3, .h = 9, .w = 6, .out_c = 17, .kh = 5, .kw = 3, .stride_h = 2, .pad_h = 2, .pad_w = 1},
        UnsharedConvShape{
            .n = 2, .c = 1, .h = 4, .w = 8, .out_c = 1, .kh = 2, .kw = 4, .stride_h = 2, .stride_w = 3}}) {
    const std::int64_t places = s.out_h() * s.out_w(), weights = places * s.out_c * s.window(),
                       in = s.n * s.c * s.h * s.w, out = s.n * s.out_c * places;
    const auto x = some_numbers(in, 1), w = some_numbers(weights, 2), b = some_numbers(places * s.out_c, 3),
               dy = some_numbers(out, 4);
    Buffer scratch(unshared_conv_scratch(s));
    for (const float* bias : {b.data(), static_cast<const float*>(nullptr)}) {
      std::vector<float> y(static_cast<std::size_t>(out)), wanted = y;
      unshared_conv(s, x.data(), w.data(), bias, y.data(), scratch.data());
      ref_unshared_conv(s, x.data(), w.data(), bias, wanted.data());
      expect_near_all(y, wanted);
    }
    std::vector<float> dx(x.size(), 9.0f), wanted_dx(x.size());
    unshared_conv_grad_data(s, dy.data(), w.data(), dx.data(), scratch.data());
    ref_unshared_conv_grad_data(s, dy.data(), w.data(), wanted_dx.data());
    expect_near_all(dx, wanted_dx);
    std::vector<float> dw(w.size()), wanted_dw(w.size()), db(b.size()), wanted_db(b.size());
    unshared_conv_grad_weights(s, x.data(), dy.data(), dw.data(), db.data(), scratch.data());
    ref_unshared_conv_grad_weights(s, x.data(), dy.data(), wanted_dw.data(), wanted_db.data());
    expect_near_all(dw, wanted_dw);
    expect_near_all(db, wanted_db);
  }
}

}  // namespace
}  // namespace echelon::kernels
