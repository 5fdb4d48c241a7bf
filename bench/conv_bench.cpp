// Convolutions of the reference networks, each direction, in the preferred layouts (or those asked for):
//     bench_conv [batch] [name part] [plain|channel8|batch8|first]
// GFLOP/s count a direct convolution's products, so a faster algorithm may exceed the peak.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/peak.h"
#include "kernels/conv/conv.h"
#include "tensor/buffer.h"

namespace echelon::kernels {
namespace {

struct Named {
  const char* name;
  ConvShape s;
};

ConvShape square(std::int64_t c, std::int64_t size, std::int64_t out_c, std::int64_t k, int stride, int pad) {
  return {.c = c,
          .h = size,
          .w = size,
          .out_c = out_c,
          .kh = k,
          .kw = k,
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = pad,
          .pad_w = pad};
}

const Named cases[] = {
    {"lenet5.1    1->6   28 5x5", square(1, 28, 6, 5, 1, 2)},
    {"lenet5.2    6->16  14 5x5", square(6, 14, 16, 5, 1, 0)},
    {"resnet.stem 3->64  32 3x3", square(3, 32, 64, 3, 1, 1)},
    {"resnet.1   64->64  32 3x3", square(64, 32, 64, 3, 1, 1)},
    {"resnet.2d 64->128  32 3x3/2", square(64, 32, 128, 3, 2, 1)},
    {"resnet.2s 64->128  32 1x1/2", square(64, 32, 128, 1, 2, 0)},
    {"resnet.2 128->128  16 3x3", square(128, 16, 128, 3, 1, 1)},
    {"resnet.3d 128->256 16 3x3/2", square(128, 16, 256, 3, 2, 1)},
    {"resnet.3s 128->256 16 1x1/2", square(128, 16, 256, 1, 2, 0)},
    {"resnet.3 256->256   8 3x3", square(256, 8, 256, 3, 1, 1)},
    {"resnet.4d 256->512  8 3x3/2", square(256, 8, 512, 3, 2, 1)},
    {"resnet.4s 256->512  8 1x1/2", square(256, 8, 512, 1, 2, 0)},
    {"resnet.4 512->512   4 3x3", square(512, 4, 512, 3, 1, 1)},
    {"cifar20.0   3->16  32 3x3", square(3, 32, 16, 3, 1, 1)},
    {"cifar20.1  16->16  32 3x3", square(16, 32, 16, 3, 1, 1)},
    {"dense.1    24->12  32 3x3", square(24, 32, 12, 3, 1, 1)},
    {"dense.2   100->12  16 3x3", square(100, 16, 12, 3, 1, 1)},
    {"alex.1      3->96  64 11x11/4", square(3, 64, 96, 11, 4, 2)},
};

float* floats(Buffer& b) { return b.as<float>().data(); }

void fill(Buffer& b) {
  unsigned state = 1;
  for (float& v : b.as<float>())
    v = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-24f - 0.5f;
}

Buffer filled(std::int64_t count) {
  Buffer b(static_cast<std::size_t>(count) * sizeof(float));
  fill(b);
  return b;
}

void report(const Named& c, ConvLayouts l) {
  const double peak = bench::peak_gflops();  // beside each case, because the clock moves
  const ConvShape& s = c.s;
  Buffer x = filled(stored_elements(s.in_shape(), l.in)), y = filled(stored_elements(s.out_shape(), l.out)),
         w = filled(s.weights()), b = filled(s.out_c);
  Buffer scratch(
      std::max({conv_forward_scratch(s, l), conv_backward_data_scratch(s, l), conv_backward_weights_scratch(s, l)}));
  const auto forward = make_conv_forward(s, l, floats(x), floats(w), floats(b), true, floats(y), scratch.data());
  const auto data = make_conv_backward_data(s, l, floats(y), floats(w), floats(x), scratch.data());
  const auto weights = make_conv_backward_weights(s, l, floats(x), floats(y), floats(w), floats(b), scratch.data());
  const double gflop = 2e-9 * static_cast<double>(s.macs());
  fmt::print("{:<30}{:>9}->{:<9}peak {:.0f}", c.name, name_of(l.in), name_of(l.out), peak);
  for (const auto& [name, run] : {std::pair{"forward", &forward}, {"data", &data}, {"weights", &weights}}) {
    for (Buffer* each : {&x, &y, &w}) fill(*each);  // the directions overwrite each other's inputs
    const double t = bench::best_seconds(*run);
    fmt::print("{:>8} {:>6.1f} {:>4.0f}% {:>9.1f}us", name, gflop / t, 100 * gflop / t / peak, t * 1e6);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace echelon::kernels

int main(int argc, char** argv) {
  using namespace echelon;
  using namespace echelon::kernels;
  const std::int64_t batch = argc > 1 ? std::atoll(argv[1]) : 64;
  const std::string part = argc > 2 ? argv[2] : "", layout = argc > 3 ? argv[3] : "";
  fmt::print("batch {}; best times; direction, GFLOP/s, share of the core's peak, time\n", batch);
  for (Named c : cases) {
    if (std::string(c.name).find(part) == std::string::npos) continue;
    c.s.n = batch;
    ConvLayouts l = preferred_layouts(c.s);
    for (const Layout asked : {Layout::plain, Layout::channel8, Layout::batch8})
      if (layout == name_of(asked)) l = {asked, asked};
    if (layout == "first") l = {Layout::plain, Layout::channel8};
    if (supports(c.s, l)) report(c, l);
  }
}
