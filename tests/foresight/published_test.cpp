#include "foresight/published.h"

#include <gtest/gtest.h>

#include "foresight/scaled_cluster.h"
#include "recipe/cluster_file.h"
#include "tests/support/source_path.h"

namespace echelon::foresight {

namespace {

TEST(Published, NetworksHaveTheWeightsOfTheirPapers) {
  // In millions, without biases of convolutions and without normalisations, which are less than a half per cent.
  const std::pair<const char*, double> wanted[]{
      {"vgg16", 138.4}, {"resnet50", 25.5}, {"resnet101", 44.5}, {"resnet152", 60.2}, {"inception_v3", 23.8}};
  for (const auto& [name, millions] : wanted)
    EXPECT_NEAR(weights_of(shaped_network(name)) / 1e6, millions, 0.01 * millions) << name;
  // Multiplications and additions of an image, forward, in thousand millions.
  const std::pair<const char*, double> work[]{{"vgg16", 30.9}, {"resnet50", 7.7}, {"inception_v3", 11.4}};
  for (const auto& [name, gflops] : work)
    EXPECT_NEAR(flops_of(shaped_network(name)) / 1e9, gflops, 0.05 * gflops) << name;
}

TEST(Published, ScalingsAreReproduced) {
  const auto disk = make_real_disk();
  for (const ScalingCase& c : published_scalings()) {
    const SimCluster cluster = read_cluster(*disk, source_path("recipes/clusters/" + c.cluster)).cluster;
    const Scaling s = data_parallel_scaling(c, Platform::of_cluster(scaled_cluster(cluster, c.workers)));
    EXPECT_NEAR(s.efficiency(), c.published, c.tolerance) << c.system << " " << c.network;
  }
}

TEST(Published, OneWorkerAloneNeedsNoSum) {
  ScalingCase c = published_scalings().front();
  c.workers = 1;
  const Platform one = Platform::of_cluster(SimCluster::uniform(1, 1e-5, 1e9));
  EXPECT_EQ(data_parallel_scaling(c, one).efficiency(), 1);
}

}  // namespace

}  // namespace echelon::foresight
