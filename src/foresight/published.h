#pragma once
// Scalings that others have published, computed from what they say about their machines: a check of the model behind
// predictions on clusters that are not at hand. Layers are those of the network's paper; the arithmetic of one
// accelerator is that of its published rate alone; links are those of a cluster file (recipes/clusters). Gradients are
// summed around a ring in fused buckets, the last layers' first, while backward goes on, as these systems do it.

#include <string>
#include <vector>

#include "foresight/costs/platform.h"

namespace echelon::foresight {

struct ShapedLayer {
  std::string name;
  double weights = 0;  // numbers
  double flops = 0;    // of one sample, forward
};

// "inception_v3", "resnet50", "resnet101", "resnet152", "vgg16": for images of 224 (Inception: 299) pixels a side.
// BadInput for other names.
std::vector<ShapedLayer> shaped_network(const std::string& name);
double weights_of(const std::vector<ShapedLayer>& network);
double flops_of(const std::vector<ShapedLayer>& network);

struct ScalingCase {
  std::string system, network, cluster;  // the file's name in recipes/clusters
  int workers = 1;
  int batch = 64;    // samples on each worker
  double alone = 0;  // samples a second of one worker
  double bucket_bytes = 64 << 20;
  double published = 0;  // share of the ideal
  // By which the computed share may differ. VGG-16's is the widest: its step is mostly one sum of half a gigabyte, so
  // all that the real link falls short of its nominal rate is seen.
  double tolerance = 0.06;
  std::string source;  // of the published figures
};
const std::vector<ScalingCase>& published_scalings();

struct Scaling {
  double seconds_alone = 0, seconds = 0;  // of a step
  double summing = 0;                     // seconds of all sums, hidden or not
  double efficiency() const { return seconds > 0 ? seconds_alone / seconds : 0; }
};
Scaling data_parallel_scaling(const ScalingCase& c, const Platform& platform);

}  // namespace echelon::foresight
