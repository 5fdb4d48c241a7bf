// One linear layer, computed by the installed library and by hand: y = x * w^T + bias.

#include <fmt/format.h>

#include <cmath>

#include "base/random.h"
#include "kernels/gemm.h"
#include "tensor/tensor.h"

using namespace echelon;

namespace {

Tensor random_tensor(Shape shape, const char* name) {
  Tensor t(DType::f32, shape);
  const Stream stream({.seed = 1, .layer = stream_layer(name)});
  auto values = t.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = stream.normal(i);
  return t;
}

}  // namespace

int main() {
  kernels::init_math_libraries();
  const kernels::LinearShape shape{.rows = 3, .in = 5, .out = 2};
  const Tensor x = random_tensor({3, 5}, "x"), w = random_tensor({2, 5}, "w"), bias = random_tensor({2}, "bias");
  Tensor y(DType::f32, {3, 2});
  Buffer scratch(kernels::linear_scratch(shape));
  kernels::linear_forward(shape, x.as<float>().data(), w.as<float>().data(), bias.as<float>().data(),
                          y.as<float>().data(), scratch.data());

  double worst = 0;
  for (int r = 0; r < 3; ++r)
    for (int o = 0; o < 2; ++o) {
      double expected = bias.as<float>()[o];
      for (int i = 0; i < 5; ++i) expected += x.as<float>()[r * 5 + i] * w.as<float>()[o * 5 + i];
      worst = std::max(worst, std::abs(expected - y.as<float>()[r * 2 + o]));
    }
  fmt::print("linear layer {} from {}: largest difference {:.1e}\n", to_string(y.shape()), to_string(x.shape()), worst);
  return worst < 1e-5 ? 0 : 1;
}
