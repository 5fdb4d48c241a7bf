// The parts of `echelon models` that are about trained ones: versions with stages, and in what two of them differ.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/models/registered_model.h"
#include "cli/runs/run_facts.h"
#include "cli/runs/run_table.h"
#include "cli/training/run_record.h"
#include "cli/verbs.h"
#include "recipe/differences.h"
#include "registry/model_diff.h"
#include "world/os/folder_disk.h"

namespace echelon::cli {

namespace {

struct ModelSettings {
  std::string root = "runs", run, name, stage = "none";
  std::vector<std::string> two;
  std::int64_t version = 0;
  bool json = false;
};

struct TrainedModel {
  RunFolder folder;
  Checkpoint checkpoint;
};

// A run ("demo-1": its best checkpoint), or a registered version ("digits@2").
TrainedModel open_model(OpenRegistry& open, const std::string& text) {
  if (names_version(text)) {
    const RegisteredModel named = registered_model(open, text);
    const auto disk = make_folder_disk(named.folder.path);
    return {named.folder,
            open_checkpoint(*disk, fmt::format("{}/step-{}", named.folder.checkpoints(), named.version.step))};
  }
  const RunFolder folder = open.folder(text);
  CheckpointSearch search = best_valid(*make_folder_disk(folder.path), folder.checkpoints());
  if (!search.found) bad_input("{}: has no checkpoint", folder.path);
  return {folder, std::move(*search.found)};
}

void register_model(const ModelSettings& s) {
  OpenRegistry open = open_registry(s.root);
  check_model_name(s.name);
  check_stage(s.stage);
  const TrainedModel model = open_model(open, s.run);
  ModelVersion added{.model = s.name, .version = 0, .stage = s.stage, .step = model.checkpoint.manifest.position.step};
  open.change(s.run, [&](Labels& labels) {
    added.version = take_version(*open.disk, open.root, *open.registry, s.name);
    labels.versions.push_back(added);
  });
  if (s.json)
    fmt::print(
        "{}\n",
        Json{
            {"model", s.name}, {"version", added.version}, {"stage", added.stage}, {"step", added.step}, {"run", s.run}}
            .dump());
  else
    fmt::print("{}@{}: step {} of {}, stage {}\n", s.name, added.version, added.step, s.run, added.stage);
}

void change_stage(const ModelSettings& s) {
  OpenRegistry open = open_registry(s.root);
  check_stage(s.stage);
  std::string run;
  for (const RegisteredVersion& v : open.registry->versions(s.name))
    if (v.version.version == s.version) run = v.run;
  if (run.empty())
    bad_input("there is no version {} of a model '{}'; `echelon models versions` lists them", s.version, s.name);
  open.change(run, [&](Labels& labels) {
    for (ModelVersion& v : labels.versions)
      if (v.model == s.name && v.version == s.version) v.stage = s.stage;
  });
  if (s.json)
    fmt::print("{}\n", Json{{"model", s.name}, {"version", s.version}, {"stage", s.stage}}.dump());
  else
    fmt::print("{}@{}: stage {}\n", s.name, s.version, s.stage);
}

void list_versions(const ModelSettings& s) {
  OpenRegistry open = open_registry(s.root);
  Json all = Json::array();
  TextTable table({"model", "version", "stage", "run", "step"});
  for (const RegisteredVersion& v : open.registry->versions(s.name)) {
    all.push_back({{"model", v.version.model},
                   {"version", v.version.version},
                   {"stage", v.version.stage},
                   {"run", v.run},
                   {"step", v.version.step}});
    table.add(
        {v.version.model, std::to_string(v.version.version), v.version.stage, v.run, std::to_string(v.version.step)});
  }
  if (s.json)
    fmt::print("{}\n", all.dump());
  else if (all.empty())
    fmt::print("no models are registered. Try: echelon models register demo-1 --name digits\n");
  else
    fmt::print("{}", table.text());
}

void diff_models(const ModelSettings& s) {
  OpenRegistry open = open_registry(s.root);
  TrainedModel a = open_model(open, s.two.at(0)), b = open_model(open, s.two.at(1));
  const ModelDifference weights = compare_weights(a.checkpoint.weights, b.checkpoint.weights);
  const RunFacts first = run_facts(a.folder), second = run_facts(b.folder);
  const std::vector<DifferingKey> settings = differing_keys({first.recipe, second.recipe});
  Json metrics = Json::object();
  for (const auto& [key, value] : first.info.summary.items())
    if (value.is_number() && second.info.summary.is_object())
      if (const Json other = second.info.summary.value(key, Json()); other.is_number()) metrics[key] = {value, other};
  if (s.json) {
    Json all = to_json(weights);
    all["metrics"] = metrics;
    all["settings"] = Json::object();
    for (const DifferingKey& d : settings) all["settings"][d.key] = d.values;
    fmt::print("{}\n", all.dump());
    return;
  }
  fmt::print(
      "architecture   {}\nweights        {}\n\n", weights.same_architecture ? "the same" : "differs",
      weights.same_weights ? "the same bits" : fmt::format("differ: {:.4g} of their length apart", weights.distance));
  TextTable tensors({"tensor", s.two[0], s.two[1], "apart", "cosine"});
  for (const TensorDifference& d : weights.tensors)
    if (!d.same_bits)
      tensors.add({d.name, d.first.empty() ? "-" : d.first, d.second.empty() ? "-" : d.second,
                   d.first == d.second ? fmt::format("{:.4g}", d.distance) : "-",
                   d.first == d.second ? fmt::format("{:.4f}", d.cosine) : "-"});
  if (!weights.same_weights) fmt::print("{}\n", tensors.text());
  TextTable table({"result", s.two[0], s.two[1]});
  for (const auto& [key, pair] : metrics.items())
    if (pair[0] != pair[1])
      table.add({key, fmt::format("{:.6g}", pair[0].get<double>()), fmt::format("{:.6g}", pair[1].get<double>())});
  for (const DifferingKey& d : settings) table.add({d.key, brief(d.values[0]), brief(d.values[1])});
  fmt::print("{}", table.text());
}

}  // namespace

void add_models_registry(Verb models) {
  const auto s = std::make_shared<ModelSettings>();
  const auto part = [&](const char* name, const char* help, const char* examples, void (*act)(const ModelSettings&)) {
    const Verb p = models.add_subcommand(name, help);
    p.add_option("--root", s->root, "Where the runs are").show_default();
    p.add_flag("--json", s->json, "Print JSON");
    p.footer(std::string("Examples:\n  ") + examples);
    p.action([s, act] { act(*s); });
    return p;
  };
  const Verb registering = part("register", "Give the best weights of a run a name and a version",
                                "echelon models register demo-1 --name digits --stage staging", register_model);
  registering.add_option("run", s->run, "A run's folder, or its name in runs/").required();
  registering.add_option("--name", s->name, "The model's name").required();
  registering.add_option("--stage", s->stage, "none, staging, production or archived").show_default();
  const Verb staging =
      part("stage", "Say what a version is used for", "echelon models stage digits 2 production", change_stage);
  staging.add_option("name", s->name, "The model's name").required();
  staging.add_option("version", s->version, "Its version").required();
  staging.add_option("stage", s->stage, "none, staging, production or archived").required();
  part("versions", "Registered models, their versions and stages",
       "echelon models versions\n  echelon models versions digits", list_versions)
      .add_option("name", s->name, "One model alone");
  part("diff", "In what two trained models differ: architecture, weights, results, settings",
       "echelon models diff demo-1 demo-2\n  echelon models diff digits@1 digits@2 --json", diff_models)
      .add_option("models", s->two, "Two runs, or versions such as digits@2")
      .required()
      .exactly(2);
}

}  // namespace echelon::cli
