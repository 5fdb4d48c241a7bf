// `echelon import`: networks and weights from elsewhere, to go on training here.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/models/output_file.h"
#include "cli/verbs.h"
#include "data/kinds.h"
#include "graph/program.h"
#include "models/wrappers/sliced.h"
#include "onnx/import.h"
#include "onnx/names.h"
#include "onnx/whole_weights.h"
#include "recipe/load.h"
#include "recipe/prepare.h"
#include "recipe/toml.h"
#include "track/safetensors.h"

namespace echelon::cli {

namespace {

struct ImportSettings {
  std::string file, output, from_output, data, recipe, names = "echelon";
  bool json = false;
};

void save_weights(Disk& disk, const std::string& path, const std::vector<onnx::NamedWeights>& weights,
                  const Metadata& metadata) {
  std::vector<TensorView> views;
  for (const onnx::NamedWeights& w : weights)
    views.push_back({w.name, DType::f32, w.shape, std::as_bytes(std::span(w.numbers))});
  const std::string beside = path + ".new";
  write_safetensors(disk, beside, views, metadata);
  disk.rename(beside, path);
}

void expect_data_kind(const std::string& kind) {
  const std::vector<std::string> all = data::kind_names();
  if (!kind.empty() && std::ranges::find(all, kind) == all.end())
    bad_input("--data {}: there is no such kind of data{}; `echelon data list` has the sets, docs/data.md the formats",
              kind, did_you_mean(kind, all));
}

// The recipe: the network layer by layer, its weights, and how to go on.
std::string recipe_text(const ImportSettings& s, const onnx::ImportedNetwork& n, const std::string& weights) {
  const auto table = [](std::map<std::string, Option> items) {
    auto t = std::make_shared<Options>();
    t->items = std::move(items);
    return Option{.value = t};
  };
  const auto text = [](const std::string& t) { return Option{.value = t}; };
  Options recipe;
  recipe.items["title"] = text("Imported from " + s.file);
  recipe.items["model"] = table({{"name", text("layers")}, {"init", text(weights)}, {"layers", {.value = n.layers}}});
  if (!s.data.empty()) recipe.items["data"] = table({{"kind", text(s.data)}});
  recipe.items["optim"] = table({{"name", text("adamw")}, {"lr", {.value = 1e-4}}});
  recipe.items["train"] = table({{"epochs", {.value = std::int64_t{1}}},
                                 {"batch", {.value = std::int64_t{32}}},
                                 {"seed", {.value = std::int64_t{1}}}});
  std::string head =
      toml_comment(fmt::format("Written by `echelon import {}`. The weights are in {}.", s.file, weights));
  for (const auto& in : n.inputs)
    head += toml_comment(fmt::format("A sample's '{}' is {}; the network says {} of it.", in.name, to_string(in.type),
                                     to_string(n.output)));
  if (s.data.empty())
    head +=
        toml_comment("It needs a table [data]: docs/data.md has the kinds; `echelon check` says what does not fit.");
  return head + write_toml(recipe);
}

void import_onnx(Disk& disk, const ImportSettings& s) {
  if (s.names != "echelon" || !s.recipe.empty()) bad_input("--names and --recipe are for .safetensors files");
  if (s.output.ends_with(".safetensors")) bad_input("{}: an imported network is a recipe, NAME.toml", s.output);
  const std::string stem = s.output.ends_with(".toml") ? s.output.substr(0, s.output.size() - 5) : s.output;
  const std::string toml = stem + ".toml", weights = stem + ".safetensors";
  if (!disk.exists(s.file)) bad_input("{}: there is no such file", s.file);
  expect_folder_of(disk, toml);
  expect_data_kind(s.data);
  for (const std::string& there : {toml, weights})
    if (disk.exists(there)) bad_input("{} is there already: give another name, or move it away", there);
  const auto bytes = read_file(disk, s.file, onnx::most_file_bytes);
  onnx::ImportedNetwork n;
  onnx::Model file;
  try {
    file = onnx::read(bytes);
    n = onnx::import_model(file, s.from_output);
  } catch (const BadInput& problem) {
    bad_input("{}: {}", s.file, problem.what());
  }
  save_weights(disk, weights, n.weights, {{"format", "pt"}, {"imported_from", s.file}});
  write_file_atomically(disk, toml, recipe_text(s, n, weights));
  std::int64_t numbers = 0;
  for (const auto& w : n.weights) numbers += w.shape.elements();
  if (s.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"recipe", toml},
                                              {"weights", weights},
                                              {"producer", file.producer},
                                              {"opset", file.opset},
                                              {"layers", n.layers.size()},
                                              {"tensors", n.weights.size()},
                                              {"numbers", numbers},
                                              {"output", n.output_name}}
                           .dump());
  else
    fmt::print("{}: {} layers, {} tensors ({} numbers) in {}\n{}", toml, n.layers.size(), n.weights.size(),
               human_count(static_cast<double>(numbers)), weights,
               s.data.empty() ? fmt::format("give it a table [data], then: echelon train {}\n", toml)
                              : fmt::format("go on with: echelon train {}\n", toml));
}

// Weights with PyTorch's names, for the network of a recipe.
void import_safetensors(Disk& disk, const ImportSettings& s) {
  if (s.names != "torch")
    bad_input("{}: model.init in a recipe takes it as it is; with --names torch, PyTorch's names become ours", s.file);
  if (s.recipe.empty()) bad_input("--names torch needs --recipe FILE: the network that the weights are for");
  if (!s.data.empty() || !s.from_output.empty()) bad_input("--data and --output-name are for .onnx files");
  Problems problems;
  const PreparedRun prepared = prepare_run(disk, s.recipe, {}, problems);
  problems.throw_if_any(s.recipe);
  ParameterTable table;
  for (const auto& phase : prepared.model->training(1)) table.include(phase.graph);
  table.include(prepared.model->evaluation(1));
  std::vector<onnx::NamedWeights> wanted, given;
  for (const auto& e : table.entries()) wanted.push_back({e.parameter.name, e.parameter.shape, {}});
  SafetensorsFile file(disk, s.file);
  for (const StoredTensor& t : file.tensors())
    if (SafetensorsFile::is_float(t)) given.push_back({t.name, t.shape, file.read_floats(t)});
  const std::vector<SlicedParameter> slices = models::sliced_parameters(*prepared.model);
  const auto weights = onnx::cut_into_slices(
      onnx::from_torch_names(prepared.model->name(), onnx::join_slices(wanted, slices), given), slices);
  const std::string out = s.output.ends_with(".safetensors") ? s.output : s.output + ".safetensors";
  expect_folder_of(disk, out);
  save_weights(disk, out, weights, {{"format", "pt"}, {"imported_from", s.file}});
  if (s.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"weights", out}, {"tensors", weights.size()}}.dump());
  else
    fmt::print("{}: {} tensors; begin with them: echelon train {} --set model.init={}\n", out, weights.size(), s.recipe,
               out);
}

void import_file(const ImportSettings& s) {
  const auto disk = make_real_disk();
  if (s.file.ends_with(".safetensors")) return import_safetensors(*disk, s);
  if (!s.file.ends_with(".onnx")) bad_input("{}: .onnx and .safetensors files can be imported", s.file);
  import_onnx(*disk, s);
}

}  // namespace

void add_import(Verb program) {
  const Verb verb = program.add_subcommand("import", "An ONNX network as a recipe and weights, to go on training");
  auto s = std::make_shared<ImportSettings>();
  verb.add_option("file", s->file, "An .onnx file, or .safetensors with PyTorch's names").required();
  verb.add_option("output", s->output, "What to write: NAME.toml and NAME.safetensors").required();
  verb.add_option("--data", s->data, "ONNX: the kind of data for the recipe, such as digits or cifar10");
  verb.add_option("--output-name", s->from_output, "ONNX: which of several outputs the network is for");
  verb.add_option("--names", s->names, "safetensors: torch, for torchvision's and Hugging Face's names")
      .show_default()
      .one_of({"echelon", "torch"});
  verb.add_option("--recipe", s->recipe, "safetensors: the recipe whose network they are for");
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer(
      "Examples:\n"
      "  echelon import lenet.onnx lenet --data digits\n"
      "  echelon train lenet.toml\n"
      "  echelon import gpt2.safetensors gpt2-ours.safetensors --names torch --recipe my-gpt.toml\n"
      "docs/models-in-and-out.md lists the ONNX ops that are read.");
  verb.action([s] { import_file(*s); });
}

}  // namespace echelon::cli
