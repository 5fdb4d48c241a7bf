#include "base/glob.h"

#include <gtest/gtest.h>

namespace echelon {
namespace {

TEST(Glob, StarsFitAnyCharactersAndALayerFitsItsWeights) {
  EXPECT_TRUE(fits("conv*", "conv1.weight"));
  EXPECT_TRUE(fits("conv1", "conv1.weight"));
  EXPECT_TRUE(fits("*.bias", "block.2.conv.bias"));
  EXPECT_TRUE(fits("b*k.?.*", "block.2.conv.bias"));
  EXPECT_TRUE(fits("*", ""));
  EXPECT_TRUE(fits("a*b*c", "axxbyybzc"));
  EXPECT_FALSE(fits("conv1", "conv10.weight"));
  EXPECT_FALSE(fits("conv", "conv1.weight"));
  EXPECT_FALSE(fits("a*b*c", "axxbyybz"));
  EXPECT_FALSE(fits("", "conv1"));
}

TEST(Glob, ALayerIsFoundWhereverItLiesUnlessADotTiesThePatternToTheOutside) {
  EXPECT_TRUE(fits_layer("conv*", "layer1.0.conv2.weight"));
  EXPECT_TRUE(fits_layer("0.conv2", "layer1.0.conv2.weight"));
  EXPECT_TRUE(fits_layer("layer1", "layer1.0.conv2.weight"));
  EXPECT_TRUE(fits_layer(".conv1", "conv1.weight"));
  EXPECT_FALSE(fits_layer(".conv1", "layer1.0.conv1.weight"));
  EXPECT_FALSE(fits_layer("conv", "layer1.0.conv2.weight"));
  EXPECT_FALSE(fits_layer("onv2", "layer1.0.conv2.weight"));
}

TEST(Glob, PatternsThatFitNothingAreFound) {
  EXPECT_EQ(fitting_none({"conv*", "fc9", "*.bias"}, {"conv1.weight", "fc1.bias"}), std::vector<std::string>{"fc9"});
}

TEST(Glob, StarsOfANewNameStandForWhatThoseOfTheOldOneFound) {
  EXPECT_EQ(renamed("features.0.weight", "features.0.*", "conv1.*"), "conv1.weight");
  EXPECT_EQ(renamed("layer1.0.conv2.weight", "layer*.*.conv*.weight", "stage*.block*.conv*.weight"),
            "stage1.block0.conv2.weight");
  EXPECT_EQ(renamed("backbone.fc.bias", "backbone.*", "*"), "fc.bias");
  EXPECT_EQ(renamed("head.bias", "backbone.*", "*"), std::nullopt);
}

}  // namespace
}  // namespace echelon
