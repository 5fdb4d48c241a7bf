#include "cli/training/run_record.h"

#include "base/error.h"
#include "cli/runs/run_facts.h"
#include "track/checkpoint.h"
#include "world/os/folder_disk.h"

namespace echelon::cli {

namespace {

void flatten_setting(const Option& option, const std::string& key, std::map<std::string, RunValue>& values) {
  if (const auto* table = std::get_if<Option::Table>(&option.value)) {
    for (const auto& [name, inner] : (*table)->items) flatten_setting(inner, key + "." + name, values);
  } else if (const auto* flag = std::get_if<bool>(&option.value)) {
    values[key] = *flag ? 1.0 : 0.0;
  } else if (const auto* whole = std::get_if<std::int64_t>(&option.value)) {
    values[key] = static_cast<double>(*whole);
  } else if (const auto* number = std::get_if<double>(&option.value)) {
    values[key] = *number;
  } else if (const auto* text = std::get_if<std::string>(&option.value)) {
    values[key] = *text;
  } else if (const auto* list = std::get_if<Option::List>(&option.value)) {
    const bool of_tables = !list->empty() && std::holds_alternative<Option::Table>(list->front().value);
    if (!of_tables) values[key] = to_text(option);
    for (std::size_t i = 0; of_tables && i < list->size(); ++i)
      flatten_setting((*list)[i], fmt::format("{}[{}]", key, i), values);
  }
}

void add_results(const Json& summary, std::map<std::string, RunValue>& values) {
  for (const auto& [key, value] : summary.items()) {
    if (value.is_number()) values[key] = value.get<double>();
    if (value.is_string() && key != "run_dir") values[key] = value.get<std::string>();
    for (const std::string group : {"system", "predicted", "measured"})
      if (key == group && value.is_object())
        for (const auto& [name, figure] : value.items()) {
          if (figure.is_number()) values[group + "." + name] = figure.get<double>();
          if (figure.is_string()) values[group + "." + name] = figure.get<std::string>();
        }
    if (key == "init" && value.is_object())
      values["parent"] = value.value("from", ""), values["parent_sha256"] = value.value("sha256", "");
  }
}

// Manifests as they stand: whether the files beside them are whole is asked by whoever loads them.
void add_checkpoints(Disk& disk, RunRecord& record, const RunFolder& folder) {
  for (const CheckpointEntry& entry : list_checkpoints(disk, folder.checkpoints())) try {
      const std::string file = entry.path + "/" + manifest_file;
      const Manifest manifest = parse_manifest(read_text(disk, file), file);
      record.checkpoints.push_back({entry.step, manifest.weights_sha256, manifest.position.score});
      if (record.checkpoints.size() > 1) continue;
      record.values["data_fingerprint"] = manifest.position.data;
      record.values["recipe_fingerprint"] = manifest.position.recipe;
    } catch (const Error&) {
    }
}

}  // namespace

RunRecord run_record(const RunFolder& folder, const std::string& name) {
  const RunFacts facts = run_facts(folder);
  const auto disk = make_folder_disk(folder.path);
  RunRecord record{.name = name, .stamp = "", .values = {}, .labels = {}, .checkpoints = {}};
  for (const auto& [key, option] : facts.recipe.items) flatten_setting(option, key, record.values);
  if (facts.info.summary.is_object()) add_results(facts.info.summary, record.values);
  record.values["model"] = facts.model;
  record.values["state"] = facts.state;
  if (facts.info.first) record.values["started"] = facts.info.first->time;
  if (facts.info.last) {
    record.values["last_step"] = static_cast<double>(facts.info.last->step);
    if (!record.values.contains("seconds"))
      if (const double* seconds = facts.info.last->find("seconds")) record.values["seconds"] = *seconds;
  }
  if (facts.best) {
    record.values["best"] = facts.best->value;
    record.values["best_metric"] = facts.best->metric;
    record.values["best_step"] = static_cast<double>(facts.best->step);
  }
  add_checkpoints(*disk, record, folder);
  try {
    record.labels = read_labels(*disk, folder);
  } catch (const Error& problem) {
    const std::string path = labels_path(folder), text = problem.what();
    record.warning =
        fmt::format("{}{} (until then the run has no labels)", text.starts_with(path) ? "" : path + ": ", text);
  }
  return record;
}

void warn(const IndexCounts& counts) {
  for (const std::string& warning : counts.warnings) fmt::print(stderr, "warning: {}\n", warning);
}

OpenRegistry open_registry(const std::string& root, bool refresh) {
  OpenRegistry open{.disk = make_real_disk(), .root = root, .registry = nullptr};
  while (open.root.size() > 1 && open.root.ends_with('/')) open.root.pop_back();
  if (!open.disk->is_directory(open.root))
    bad_input("{}: there is no such folder. Train something first, or name the folder of runs with --root", open.root);
  open.registry = std::make_unique<Registry>(open.root);
  if (refresh) warn(refresh_index(*open.disk, open.root, *open.registry, run_record));
  return open;
}

std::string OpenRegistry::name_of(const RunFolder& folder) const {
  if (!folder.path.starts_with(root + "/"))
    bad_input("{}: is not in {}, whose registry this is about; name its folder with --root", folder.path, root);
  return folder.path.substr(root.size() + 1);
}

RunFolder OpenRegistry::folder(const std::string& run) { return open_run(*disk, root, run); }

Labels OpenRegistry::change(const std::string& run, const std::function<void(Labels&)>& f) {
  const RunFolder where = folder(run);
  const std::string name = name_of(where);
  const auto inside = make_folder_disk(where.path);
  Labels labels;
  // Under the registry's lock, so that two programs do not undo each other's changes.
  registry->in_transaction([&] {
    labels = read_labels(*inside, where);
    f(labels);
    write_labels(*inside, where, labels);
  });
  refresh_run(*disk, root, *registry, run_record, name);
  return labels;
}

std::string tell_registry(const RunFolder& folder) try {
  const auto disk = make_real_disk();
  std::string root;
  if (folder.path.starts_with("runs/")) root = "runs";
  const auto slash = folder.path.find_last_of('/');
  if (root.empty() && slash != std::string::npos && slash > 0 &&
      disk->exists(folder.path.substr(0, slash) + "/" + Registry::file_name))
    root = folder.path.substr(0, slash);
  if (root.empty()) return "";
  Registry registry(root);
  refresh_run(*disk, root, registry, run_record, folder.path.substr(root.size() + 1));
  return "";
} catch (const std::exception& problem) {
  return problem.what();
}

}  // namespace echelon::cli
