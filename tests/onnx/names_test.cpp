// PyTorch's names for our parameters, there and back.
#include "onnx/names.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "models/zoo.h"
#include "recipe/toml.h"
#include "tests/support/graph_runner.h"

namespace echelon::onnx {
namespace {

std::vector<std::string> names_in(const std::string& model, const models::InputSpec& spec, const std::string& options) {
  const auto made = models::make_model(model, spec, parse_toml(options, "test"));
  ParameterTable table;
  table.include(made->evaluation(1));
  std::vector<std::string> names, torch;
  for (const auto& e : table.entries()) names.push_back(e.parameter.name);
  for (const TorchName& t : torch_names(model, names)) torch.push_back(t.name);
  return torch;
}

const models::InputSpec photos_for_names = {
    .inputs = {{"image", f32({3, 64, 64})}}, .target = {"label", i32({})}, .classes = 4};

void expect_has(const std::vector<std::string>& names, std::initializer_list<const char*> wanted) {
  for (const char* name : wanted) EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
}

TEST(TorchNames, AreTorchvisions) {
  expect_has(names_in("vgg11", photos_for_names, "width = 4\nhidden = 8"),
             {"features.0.weight", "features.3.bias", "features.6.weight", "features.8.weight", "features.11.weight",
              "features.13.weight", "features.16.weight", "features.18.weight", "classifier.0.weight",
              "classifier.3.bias", "classifier.6.weight"});
  expect_has(names_in("vgg11", photos_for_names, "width = 4\nhidden = 8\nbatch_norm = true"),
             {"features.0.weight", "features.1.running_mean", "features.4.weight", "features.5.bias",
              "features.25.weight", "features.26.running_var"});
  expect_has(names_in("densenet121", photos_for_names, "growth = 4"),
             {"features.conv0.weight", "features.norm0.bias", "features.denseblock1.denselayer1.norm1.weight",
              "features.denseblock4.denselayer16.conv2.weight", "features.transition1.conv.weight",
              "features.norm5.running_mean", "classifier.bias"});
  expect_has(names_in("resnet18", photos_for_names, "width = 4"),
             {"conv1.weight", "bn1.running_var", "layer1.0.conv1.weight", "layer2.0.downsample.1.bias", "fc.weight"});
  expect_has(names_in("alexnet", photos_for_names, "hidden = 8\nvariant = 'single'"),
             {"features.0.weight", "features.10.bias", "classifier.1.weight", "classifier.6.bias"});
}

TEST(TorchNames, OfGptAreHuggingFaces) {
  const models::InputSpec text = {.inputs = {{"tokens", i32({5})}}, .target = {"targets", i32({5})}, .classes = 7};
  expect_has(
      names_in("gpt", text, "width = 8\nheads = 2\nlayers = 2"),
      {"transformer.wte.weight", "transformer.wpe.weight", "transformer.h.0.ln_1.weight",
       "transformer.h.1.attn.c_attn.weight", "transformer.h.1.attn.c_proj.bias", "transformer.h.0.mlp.c_fc.weight",
       "transformer.h.0.mlp.c_proj.bias", "transformer.ln_f.bias", "lm_head.weight"});
}

TEST(TorchNames, ComeBackTheSameWithMatricesTurned) {
  const std::vector<NamedWeights> ours = {{"block0.up.weight", {2, 3}, {1, 2, 3, 4, 5, 6}},
                                          {"block0.up.bias", {2}, {7, 8}}};
  const auto torch = to_torch_names("gpt", ours);
  EXPECT_EQ(torch[0].name, "transformer.h.0.mlp.c_fc.weight");
  EXPECT_EQ(torch[0].shape, (Shape{3, 2}));
  EXPECT_EQ(torch[0].numbers, (std::vector<float>{1, 4, 2, 5, 3, 6}));
  const auto back = from_torch_names("gpt", {{"block0.up.weight", {2, 3}, {}}, {"block0.up.bias", {2}, {}}}, torch);
  EXPECT_EQ(back[0].numbers, ours[0].numbers);
  EXPECT_EQ(back[1].numbers, ours[1].numbers);
  EXPECT_THROW(from_torch_names("gpt", {{"head.weight", {2, 3}, {}}}, torch), BadInput);
}

}  // namespace
}  // namespace echelon::onnx
