#include "onnx/names.h"

#include <algorithm>
#include <array>
#include <map>
#include <regex>

#include "base/error.h"
#include "base/listed.h"

namespace echelon::onnx {
namespace {

struct NameRule {
  const char* models;  // whose names they are: a pattern
  const char *ours, *torch;
  bool transposed = false;
};

// The first rule that fits the whole name is used; "$1" is what the first parentheses held.
constexpr auto name_rules = std::to_array<NameRule>({
    {"densenet121", "(conv0|norm0|norm5)\\.(.*)", "features.$1.$2"},
    {"densenet121", "block(\\d+)\\.layer(\\d+)\\.(.*)", "features.denseblock$1.denselayer$2.$3"},
    {"densenet121", "(transition\\d+\\..*)", "features.$1"},
    {"densenet121", "norm\\.(.*)", "features.norm5.$1"},
    {"densenet121", "fc\\.(.*)", "classifier.$1"},
    {"alexnet", "conv1\\.(.*)", "features.0.$1"},
    {"alexnet", "conv2\\.(.*)", "features.3.$1"},
    {"alexnet", "conv3\\.(.*)", "features.6.$1"},
    {"alexnet", "conv4\\.(.*)", "features.8.$1"},
    {"alexnet", "conv5\\.(.*)", "features.10.$1"},
    {"alexnet", "fc6\\.(.*)", "classifier.1.$1"},
    {"alexnet", "fc7\\.(.*)", "classifier.4.$1"},
    {"alexnet", "fc8\\.(.*)", "classifier.6.$1"},
    {"vgg\\d+", "fc1\\.(.*)", "classifier.0.$1"},
    {"vgg\\d+", "fc2\\.(.*)", "classifier.3.$1"},
    {"vgg\\d+", "fc3\\.(.*)", "classifier.6.$1"},
    {"gpt", "tok\\.weight", "transformer.wte.weight"},
    {"gpt", "pos\\.weight", "transformer.wpe.weight"},
    {"gpt", "norm\\.(.*)", "transformer.ln_f.$1"},
    {"gpt", "block(\\d+)\\.norm(\\d)\\.(.*)", "transformer.h.$1.ln_$2.$3"},
    {"gpt", "block(\\d+)\\.attention\\.qkv\\.weight", "transformer.h.$1.attn.c_attn.weight", true},
    {"gpt", "block(\\d+)\\.attention\\.qkv\\.bias", "transformer.h.$1.attn.c_attn.bias"},
    {"gpt", "block(\\d+)\\.attention\\.out\\.weight", "transformer.h.$1.attn.c_proj.weight", true},
    {"gpt", "block(\\d+)\\.attention\\.out\\.bias", "transformer.h.$1.attn.c_proj.bias"},
    {"gpt", "block(\\d+)\\.up\\.weight", "transformer.h.$1.mlp.c_fc.weight", true},
    {"gpt", "block(\\d+)\\.up\\.bias", "transformer.h.$1.mlp.c_fc.bias"},
    {"gpt", "block(\\d+)\\.down\\.weight", "transformer.h.$1.mlp.c_proj.weight", true},
    {"gpt", "block(\\d+)\\.down\\.bias", "transformer.h.$1.mlp.c_proj.bias"},
    {"gpt", "head\\.weight", "lm_head.weight"},
});

// torchvision numbers all modules of VGG's features: a convolution, perhaps its batch norm, a ReLU; a pooling ends a
// stage.
std::map<std::string, std::string> vgg_features(const std::vector<std::string>& names) {
  std::map<std::string, std::string> numbered;
  std::string stage;
  int next = 0;
  const bool norms = std::ranges::any_of(names, [](const std::string& n) { return n.ends_with("running_mean"); });
  for (const std::string& name : names) {
    const std::regex pattern("(stage\\d+)\\.conv(\\d*)\\.weight");
    std::smatch m;
    if (!std::regex_match(name, m, pattern)) continue;
    if (!stage.empty() && m[1] != stage) ++next;  // the pooling
    stage = m[1];
    numbered[fmt::format("{}.conv{}", stage, m[2].str())] = fmt::format("features.{}", next++);
    if (norms) numbered[fmt::format("{}.bn{}", stage, m[2].str())] = fmt::format("features.{}", next++);
    ++next;  // the ReLU
  }
  return numbered;
}

std::vector<float> transposed(const std::vector<float>& numbers, std::int64_t rows, std::int64_t cols) {
  std::vector<float> out(numbers.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c)
      out[static_cast<std::size_t>(c * rows + r)] = numbers[static_cast<std::size_t>(r * cols + c)];
  return out;
}

std::vector<std::string> names_of(const std::vector<NamedWeights>& weights) {
  std::vector<std::string> names;
  for (const NamedWeights& w : weights) names.push_back(w.name);
  return names;
}

}  // namespace

std::vector<TorchName> torch_names(const std::string& model, const std::vector<std::string>& names) {
  std::vector<std::pair<std::regex, const NameRule*>> rules;
  for (const NameRule& rule : name_rules)
    if (std::regex_match(model, std::regex(rule.models))) rules.emplace_back(rule.ours, &rule);
  const auto features = model.starts_with("vgg") ? vgg_features(names) : std::map<std::string, std::string>{};
  std::vector<TorchName> out;
  for (const std::string& name : names) {
    TorchName torch{name};
    const std::size_t dot = name.rfind('.');
    if (const auto it = features.find(name.substr(0, dot)); it != features.end())
      torch.name = it->second + name.substr(dot);
    for (const auto& [pattern, rule] : rules)
      if (std::smatch m; std::regex_match(name, m, pattern)) {
        torch = {m.format(rule->torch), rule->transposed};
        break;
      }
    out.push_back(torch);
  }
  return out;
}

std::vector<NamedWeights> to_torch_names(const std::string& model, std::vector<NamedWeights> weights) {
  const std::vector<TorchName> names = torch_names(model, names_of(weights));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    NamedWeights& w = weights[i];
    w.name = names[i].name;
    if (!names[i].transposed) continue;
    w.numbers = transposed(w.numbers, w.shape[0], w.shape[1]);
    w.shape = {w.shape[1], w.shape[0]};
  }
  return weights;
}

std::vector<NamedWeights> from_torch_names(const std::string& model, std::vector<NamedWeights> wanted,
                                           std::span<const NamedWeights> given) {
  const std::vector<TorchName> names = torch_names(model, names_of(wanted));
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    NamedWeights& w = wanted[i];
    // Files of a bare GPT-2 leave out the word before every name.
    const auto it = std::ranges::find_if(given, [&](const NamedWeights& g) {
      return g.name == names[i].name || "transformer." + g.name == names[i].name;
    });
    const Shape shape = names[i].transposed ? Shape{w.shape[1], w.shape[0]} : w.shape;
    if (it == given.end())
      problems.push_back(fmt::format("{} {}: there is no {}", w.name, to_string(w.shape), names[i].name));
    else if (!(it->shape == shape))
      problems.push_back(fmt::format("{} {}: {} is {}", w.name, to_string(w.shape), it->name, to_string(it->shape)));
    else
      w.numbers = names[i].transposed ? transposed(it->numbers, shape[0], shape[1]) : it->numbers;
  }
  if (!problems.empty()) bad_input("the weights do not fit {}: {}", model, listed(problems, 8));
  return wanted;
}

}  // namespace echelon::onnx
