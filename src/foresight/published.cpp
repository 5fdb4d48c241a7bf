#include "foresight/published.h"

#include <fmt/format.h>

#include <numeric>

#include "base/error.h"
#include "foresight/costs/collective_costs.h"
#include "parallel/step/buckets.h"

namespace echelon::foresight {

namespace {

// Puts layers together from shapes alone.
class Shapes {
 public:
  std::vector<ShapedLayer> layers;
  void conv(const std::string& name, int in, int out, int kernel_h, int kernel_w, int height, int width) {
    const double weights = static_cast<double>(in) * out * kernel_h * kernel_w;
    layers.push_back({name, weights, 2 * weights * height * width});
  }
  void conv(const std::string& name, int in, int out, int kernel, int size) {
    conv(name, in, out, kernel, kernel, size, size);
  }
  void linear(const std::string& name, int in, int out) {
    const double weights = static_cast<double>(in) * out + out;
    layers.push_back({name, weights, 2 * weights});
  }
};

std::vector<ShapedLayer> vgg16() {
  Shapes s;
  const int stages[][3]{
      {64, 2, 224}, {128, 2, 112}, {256, 3, 56}, {512, 3, 28}, {512, 3, 14}};  // width, convolutions, size
  int in = 3, number = 0;
  for (const auto& [width, count, size] : stages)
    for (int i = 0; i < count; ++i, in = width) s.conv(fmt::format("conv{}", ++number), in, width, 3, size);
  s.linear("fc6", 512 * 7 * 7, 4096);
  s.linear("fc7", 4096, 4096);
  s.linear("fc8", 4096, 1000);
  return s.layers;
}

std::vector<ShapedLayer> resnet(const std::vector<int>& blocks) {
  Shapes s;
  s.conv("conv1", 3, 64, 7, 112);
  int in = 64, width = 64, size = 56;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage, width *= 2, size /= 2)
    for (int b = 0; b < blocks[stage]; ++b) {
      const std::string name = fmt::format("layer{}.{}", stage + 1, b);
      if (b == 0) s.conv(name + ".shortcut", in, 4 * width, 1, size);
      s.conv(name + ".conv1", in, width, 1, size);
      s.conv(name + ".conv2", width, width, 3, size);
      s.conv(name + ".conv3", width, 4 * width, 1, size);
      in = 4 * width;
    }
  s.linear("fc", 2048, 1000);
  return s.layers;
}

// Szegedy et al. 2015, "Rethinking the Inception architecture", without the auxiliary head.
std::vector<ShapedLayer> inception_v3() {
  Shapes s;
  s.conv("conv1", 3, 32, 3, 149), s.conv("conv2", 32, 32, 3, 147), s.conv("conv3", 32, 64, 3, 147);
  s.conv("conv4", 64, 80, 1, 73), s.conv("conv5", 80, 192, 3, 71);
  int in = 192;
  for (const int pool : {32, 64, 64}) {  // 35 x 35
    s.conv("a.1x1", in, 64, 1, 35);
    s.conv("a.5x5.1", in, 48, 1, 35), s.conv("a.5x5.2", 48, 64, 5, 35);
    s.conv("a.3x3.1", in, 64, 1, 35), s.conv("a.3x3.2", 64, 96, 3, 35), s.conv("a.3x3.3", 96, 96, 3, 35);
    s.conv("a.pool", in, pool, 1, 35);
    in = 64 + 64 + 96 + pool;
  }
  s.conv("b.3x3", 288, 384, 3, 17);
  s.conv("b.double.1", 288, 64, 1, 35), s.conv("b.double.2", 64, 96, 3, 35), s.conv("b.double.3", 96, 96, 3, 17);
  for (const int c : {128, 160, 160, 192}) {  // 17 x 17
    s.conv("c.1x1", 768, 192, 1, 17);
    s.conv("c.7x7.1", 768, c, 1, 17), s.conv("c.7x7.2", c, c, 1, 7, 17, 17), s.conv("c.7x7.3", c, 192, 7, 1, 17, 17);
    s.conv("c.double.1", 768, c, 1, 17);
    s.conv("c.double.2", c, c, 7, 1, 17, 17), s.conv("c.double.3", c, c, 1, 7, 17, 17);
    s.conv("c.double.4", c, c, 7, 1, 17, 17), s.conv("c.double.5", c, 192, 1, 7, 17, 17);
    s.conv("c.pool", 768, 192, 1, 17);
  }
  s.conv("d.3x3.1", 768, 192, 1, 17), s.conv("d.3x3.2", 192, 320, 3, 8);
  s.conv("d.7x7.1", 768, 192, 1, 17), s.conv("d.7x7.2", 192, 192, 1, 7, 17, 17),
      s.conv("d.7x7.3", 192, 192, 7, 1, 17, 17);
  s.conv("d.7x7.4", 192, 192, 3, 8);
  in = 1280;
  for (int i = 0; i < 2; ++i, in = 2048) {  // 8 x 8
    s.conv("e.1x1", in, 320, 1, 8);
    s.conv("e.3x3.1", in, 384, 1, 8), s.conv("e.3x3.2", 384, 384, 1, 3, 8, 8), s.conv("e.3x3.3", 384, 384, 3, 1, 8, 8);
    s.conv("e.double.1", in, 448, 1, 8), s.conv("e.double.2", 448, 384, 3, 8);
    s.conv("e.double.3", 384, 384, 1, 3, 8, 8), s.conv("e.double.4", 384, 384, 3, 1, 8, 8);
    s.conv("e.pool", in, 192, 1, 8);
  }
  s.linear("fc", 2048, 1000);
  return s.layers;
}

}  // namespace

std::vector<ShapedLayer> shaped_network(const std::string& name) {
  if (name == "vgg16") return vgg16();
  if (name == "resnet50") return resnet({3, 4, 6, 3});
  if (name == "resnet101") return resnet({3, 4, 23, 3});
  if (name == "resnet152") return resnet({3, 8, 36, 3});
  if (name == "inception_v3") return inception_v3();
  bad_input("there is no network '{}' among the published scalings", name);
}

double weights_of(const std::vector<ShapedLayer>& network) {
  double sum = 0;
  for (const ShapedLayer& l : network) sum += l.weights;
  return sum;
}

double flops_of(const std::vector<ShapedLayer>& network) {
  double sum = 0;
  for (const ShapedLayer& l : network) sum += l.flops;
  return sum;
}

const std::vector<ScalingCase>& published_scalings() {
  const char* horovod =
      "Sergeev and Del Balso 2018 (arXiv 1802.05799): 128 servers of 4 Pascal GPUs, RoCE at 25 Gbit/s";
  const char* ddl = "Cho et al. 2017 (arXiv 1708.02188): 64 servers of 4 P100, InfiniBand";
  // One P100 alone: tensorflow.org/performance/benchmarks (2017), synthetic data; ResNet-101 lies between ResNet-50 and
  // ResNet-152 by its arithmetic.
  const double between = (219 * flops_of(resnet({3, 4, 6, 3})) + 91.8 * flops_of(resnet({3, 8, 36, 3}))) / 2 /
                         flops_of(resnet({3, 4, 23, 3}));
  static const std::vector<ScalingCase> table{{.system = "Horovod",
                                               .network = "inception_v3",
                                               .cluster = "gpus-25gbit.toml",
                                               .workers = 512,
                                               .alone = 142,
                                               .published = 0.90,
                                               .source = horovod},
                                              {.system = "Horovod",
                                               .network = "resnet101",
                                               .cluster = "gpus-25gbit.toml",
                                               .workers = 512,
                                               .alone = between,
                                               .published = 0.90,
                                               .source = horovod},
                                              {.system = "Horovod",
                                               .network = "vgg16",
                                               .cluster = "gpus-25gbit.toml",
                                               .workers = 512,
                                               .alone = 154,
                                               .published = 0.68,
                                               .tolerance = 0.08,
                                               .source = horovod},
                                              {.system = "DDL-Caffe",
                                               .network = "resnet50",
                                               .cluster = "gpus-infiniband.toml",
                                               .workers = 256,
                                               .batch = 32,
                                               .alone = 219,
                                               .published = 0.95,
                                               .tolerance = 0.04,
                                               .source = ddl}};
  return table;
}

Scaling data_parallel_scaling(const ScalingCase& c, const Platform& platform) {
  const std::vector<ShapedLayer> network = shaped_network(c.network);
  Scaling result{.seconds_alone = c.batch / c.alone};
  // A third of a step is forward; backward goes through the layers from the last one on, in proportion to their
  // arithmetic.
  const double all = flops_of(network), forward = result.seconds_alone / 3;
  std::vector<ReadyPiece> pieces;
  double at = forward;
  std::size_t end = static_cast<std::size_t>(weights_of(network));
  for (std::size_t l = network.size(); l-- > 0;) {
    at += 2 * forward * network[l].flops / all;
    const auto size = static_cast<std::size_t>(network[l].weights);
    pieces.push_back({end - size, end, at});
    end -= size;
  }
  std::vector<int> ranks(static_cast<std::size_t>(platform.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto cost = [&](std::size_t bytes) { return ring_seconds(platform, ranks, static_cast<double>(bytes)); };
  const std::vector<Bucket> buckets = fuse_pieces(pieces, static_cast<std::size_t>(c.bucket_bytes));
  for (const Bucket& b : buckets) result.summing += cost((b.end - b.begin) * sizeof(float));
  result.seconds = std::max(result.seconds_alone, finish_time(buckets, pieces, cost));
  return result;
}

}  // namespace echelon::foresight
