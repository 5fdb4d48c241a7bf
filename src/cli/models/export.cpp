// `echelon export`: a trained network for other programs, as ONNX or as safetensors.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/answers/loaded_run.h"
#include "cli/models/output_file.h"
#include "cli/verbs.h"
#include "models/wrappers/sliced.h"
#include "onnx/export.h"
#include "onnx/names.h"
#include "onnx/whole_weights.h"
#include "run/weights.h"

namespace echelon::cli {

namespace {

struct ExportSettings {
  std::string run, file, checkpoint = "best", names = "echelon";
  std::int64_t batch = 0;
  bool ema = false, json = false;
};

std::string dims_text(const onnx::ValueType& v) {
  std::string text;
  for (std::size_t i = 0; i < v.dims.size(); ++i)
    text += fmt::format("{}{}", i ? ", " : "", v.dims[i] < 0 ? v.names[i] : std::to_string(v.dims[i]));
  return fmt::format("{}[{}]", v.name, text);
}

nlohmann::ordered_json values_json(const std::vector<onnx::ValueType>& values) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const onnx::ValueType& v : values) {
    nlohmann::ordered_json dims = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < v.dims.size(); ++i)
      v.dims[i] < 0 ? dims.push_back(v.names[i]) : dims.push_back(v.dims[i]);
    all.push_back(
        {{"name", v.name}, {"shape", dims}, {"datatype", v.element == onnx::Element::i32 ? "INT32" : "FP32"}});
  }
  return all;
}

void export_onnx(Disk& disk, const ExportSettings& s, const LoadedRun& run) {
  if (s.names != "echelon") bad_input("--names is for .safetensors files; in ONNX, weights keep their own names");
  onnx::Model file = onnx::export_model(*run.prepared.model, run.table, run.parameters.as<float>(), {.batch = s.batch});
  file.metadata["echelon.run"] = run.folder.path;
  file.metadata["echelon.weights_sha256"] = run.manifest.weights_sha256;
  const std::string bytes = onnx::write(file);
  write_file_atomically(disk, s.file, bytes);
  if (s.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"file", s.file},
                                              {"bytes", bytes.size()},
                                              {"opset", file.opset},
                                              {"nodes", file.nodes.size()},
                                              {"inputs", values_json(file.inputs)},
                                              {"outputs", values_json(file.outputs)},
                                              {"step", run.manifest.position.step},
                                              {"weights_sha256", run.manifest.weights_sha256}}
                           .dump());
    return;
  }
  std::vector<std::string> in, out;
  for (const auto& v : file.inputs) in.push_back(dims_text(v));
  for (const auto& v : file.outputs) out.push_back(dims_text(v));
  fmt::print("{}: {} ({}) as ONNX, opset {}, {} nodes, {} bytes\n  {} -> {}\n", s.file, run.folder.path, run.which,
             file.opset, file.nodes.size(), human_count(static_cast<double>(bytes.size())), fmt::join(in, ", "),
             fmt::join(out, ", "));
}

void export_safetensors(Disk& disk, const ExportSettings& s, const LoadedRun& run) {
  if (s.batch != 0) bad_input("--batch is for .onnx files");
  const std::string& model = run.prepared.model->name();
  std::vector<onnx::NamedWeights> weights;
  for (const TensorView& v : weight_views(run.table, run.parameters.as<float>())) {
    const auto* numbers = reinterpret_cast<const float*>(v.bytes.data());
    weights.push_back({v.name, v.shape, {numbers, numbers + v.shape.elements()}});
  }
  if (s.names == "torch")
    weights = onnx::to_torch_names(model, onnx::join_slices(weights, models::sliced_parameters(*run.prepared.model)));
  std::vector<TensorView> views;
  for (const onnx::NamedWeights& w : weights)
    views.push_back({w.name, DType::f32, w.shape, std::as_bytes(std::span(w.numbers))});
  const std::string beside = s.file + ".new";
  const FileDigest digest =
      write_safetensors(disk, beside, views, {{"format", "pt"}, {"model", model}, {"names", s.names}});
  disk.rename(beside, s.file);
  if (s.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"file", s.file},
                                              {"bytes", digest.bytes},
                                              {"tensors", views.size()},
                                              {"names", s.names},
                                              {"step", run.manifest.position.step},
                                              {"weights_sha256", run.manifest.weights_sha256}}
                           .dump());
  else
    fmt::print("{}: {} tensors of {} ({}), names as in {}\n", s.file, views.size(), run.folder.path, run.which,
               s.names == "torch" ? "PyTorch" : "Echelon");
}

void export_run(const ExportSettings& s) {
  const auto disk = make_real_disk();
  if (!s.file.ends_with(".onnx") && !s.file.ends_with(".safetensors"))
    bad_input("{}: the file's name says what it becomes, .onnx or .safetensors", s.file);
  if (disk->is_directory(s.file)) bad_input("{} is a folder", s.file);
  expect_folder_of(*disk, s.file);
  const LoadedRun run = load_run(*disk, s.run, s.checkpoint, s.ema);
  s.file.ends_with(".onnx") ? export_onnx(*disk, s, run) : export_safetensors(*disk, s, run);
}

}  // namespace

void add_export(Verb program) {
  const Verb verb = program.add_subcommand("export", "A trained network as ONNX, or its weights as safetensors");
  auto s = std::make_shared<ExportSettings>();
  verb.add_option("run", s->run, "A run's folder, its name in runs/, or a registered MODEL@VERSION").required();
  verb.add_option("file", s->file, "What to write: .onnx or .safetensors").required();
  verb.add_option("--checkpoint", s->checkpoint,
                  "best (by train.monitor, and of equals the lowest loss), last or a step")
      .show_default();
  verb.add_option("--batch", s->batch, "ONNX: for batches of this size only (default: of any size)").range(1, 1 << 20);
  verb.add_option("--names", s->names, "safetensors: echelon, or torch for torchvision's and Hugging Face's names")
      .show_default()
      .one_of({"echelon", "torch"});
  verb.add_flag("--ema", s->ema, "Use the average of the weights that optim.ema kept");
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer(
      "Examples:\n"
      "  echelon export runs/demo-1 digits.onnx\n"
      "  echelon export demo-1 digits.onnx --checkpoint last --json\n"
      "  echelon export resnet18-1 resnet18.safetensors --names torch\n"
      "docs/models-in-and-out.md says what others can do with the files.");
  verb.action([s] { export_run(*s); });
}

}  // namespace echelon::cli
