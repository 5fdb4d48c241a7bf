#include "run/training/initial_weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/glob.h"
#include "base/listed.h"
#include "base/text.h"
#include "models/wrappers/distillation.h"
#include "models/wrappers/fine_tuning.h"
#include "run/matching_tokens.h"
#include "run/other_meaning.h"
#include "track/checkpoint.h"
#include "track/run.h"
#include "track/weights_hash.h"

namespace echelon {

namespace {

// A run's best weights, a checkpoint's, or the file itself.
std::string find_source(Disk& disk, const std::string& from) {
  if (disk.exists(from) && !disk.is_directory(from)) return from;
  if (disk.exists(from + "/" + model_file)) return from + "/" + model_file;
  if (disk.is_directory(from) && !disk.exists(RunFolder{from}.recipe()))
    bad_input("{} is a folder, but neither a run nor a checkpoint", from);
  const RunFolder run = open_run(disk, "runs", from);
  CheckpointSearch search = best_valid(disk, run.checkpoints());
  if (!search.found)
    bad_input("{} has no checkpoint that can be used{}{}", run.path, search.skipped.empty() ? "" : ": ",
              fmt::join(search.skipped, "; "));
  return search.found->path + "/" + model_file;
}

// Wrappers of PyTorch put a word before every name.
std::string without_wrappers(std::string name, const std::vector<StoredTensor>& all) {
  for (const std::string prefix : {"module.", "_orig_mod."})
    if (std::ranges::all_of(all, [&](const StoredTensor& t) { return t.name.starts_with(prefix); }))
      name = name.substr(prefix.size());
  return name;
}

// The source's tensors by the names they have in the network.
std::map<std::string, const StoredTensor*> by_name(const SafetensorsFile& file, const StartSpec& spec,
                                                   OptionReader& table) {
  std::map<std::string, const StoredTensor*> names;
  std::set<std::string> used;
  for (const StoredTensor& t : file.tensors()) {
    if (t.name.ends_with("num_batches_tracked")) continue;  // PyTorch counts batches; nothing here reads it
    std::string name = without_wrappers(t.name, file.tensors());
    for (const auto& [from, to] : spec.rename)
      if (const auto now = renamed(name, from, to)) {
        used.insert(from);
        name = *now;
        break;
      }
    if (!names.emplace(name, &t).second)
      table.problem("init", fmt::format("gives two tensors of {} the name {}: change its rename", file.path(), name));
  }
  for (const auto& [from, to] : spec.rename)
    if (!used.contains(from))
      table.problem("init", fmt::format("renames \"{}\", but {} has no such tensor", from, file.path()));
  return names;
}

std::vector<std::int64_t> without_ones(const Shape& shape) {
  std::vector<std::int64_t> dims;
  for (const std::int64_t d : shape.dims())
    if (d != 1) dims.push_back(d);
  return dims;
}

void report(const InitialWeights& weights, const ParameterTable& table, std::vector<std::string>& notes) {
  double loaded = 0, all = 0;
  for (const auto& t : weights.tensors) loaded += static_cast<double>(t.values.size());
  for (const auto& e : table.entries()) all += static_cast<double>(e.size);
  notes.push_back(fmt::format("begins with {}: {} of {} tensors ({} of {} numbers), sha256 {}", weights.source,
                              weights.tensors.size(), table.entries().size(), human_count(loaded), human_count(all),
                              weights.sha256.substr(0, 12)));
  if (!weights.not_loaded.empty()) notes.push_back("begin with random numbers: " + listed(weights.not_loaded, 8));
  if (!weights.left_over.empty()) notes.push_back("not used of the source: " + listed(weights.left_over, 8));
}

// The rows of the source's tensor that stand for tokens of this run; none if it has no row for each token.
std::optional<InitialWeights::Tensor> rows_of_tokens(const Parameter& p, const StoredTensor& stored,
                                                     SafetensorsFile& file, const MatchingTokens& tokens) {
  std::vector<std::int64_t> here(p.shape.dims().begin(), p.shape.dims().end()),
      there(stored.shape.dims().begin(), stored.shape.dims().end());
  if (here.empty() || here.size() != there.size() || here[0] != std::ssize(tokens.source_of()) ||
      there[0] != static_cast<std::int64_t>(tokens.source_tokens()))
    return {};
  here[0] = there[0] = 1;
  if (here != there) return {};
  InitialWeights::Tensor loaded{p.name, {}, {}};
  const std::vector<float> all = file.read_floats(stored);
  const std::size_t width = all.size() / tokens.source_tokens();
  for (std::size_t row = 0; row < tokens.source_of().size(); ++row) {
    const std::int64_t from = tokens.source_of()[row];
    if (from < 0) continue;
    loaded.rows.push_back(static_cast<std::int64_t>(row));
    const auto values = std::span(all).subspan(static_cast<std::size_t>(from) * width, width);
    loaded.values.insert(loaded.values.end(), values.begin(), values.end());
  }
  return loaded;
}

ParameterTable table_of(const models::Model& model) {
  ParameterTable table;
  for (const auto& phase : model.training(1)) table.include(phase.graph);
  table.include(model.evaluation(1));
  return table;
}

}  // namespace

void InitialWeights::write(const ParameterTable& table, std::span<float> parameters) const {
  for (const Tensor& t : tensors) {
    const auto whole = parameters.subspan(table.find(t.name).offset);
    const std::size_t width = t.rows.empty() ? t.values.size() : t.values.size() / t.rows.size();
    for (std::size_t from = 0; from * width < t.values.size(); ++from) {
      const std::size_t to = t.rows.empty() ? from : static_cast<std::size_t>(t.rows[from]);
      std::ranges::copy(std::span(t.values).subspan(from * width, width), whole.subspan(to * width, width).begin());
    }
  }
}

std::size_t floats_of(const models::Model& model) { return table_of(model).floats(); }

std::shared_ptr<const InitialWeights> initial_weights_of(const models::Model& model, std::span<const float> weights) {
  const ParameterTable table = table_of(model);
  if (weights.size() != table.floats())
    fail("{} weights are not those of this network, which has {}", weights.size(), table.floats());
  auto all = std::make_shared<InitialWeights>();
  for (const auto& e : table.entries()) {
    const auto values = weights.subspan(e.offset, e.size);
    all->tensors.push_back({e.parameter.name, {values.begin(), values.end()}});
  }
  return all;
}

std::shared_ptr<const InitialWeights> load_initial_weights(Disk& disk, PreparedRun& prepared, Problems& problems) {
  const StartSpec spec = *prepared.recipe.start;
  OptionReader model(prepared.recipe.model, problems);
  if (!prepared.model) return nullptr;  // which is a problem already
  const std::size_t before = problems.list().size();
  auto weights = std::make_shared<InitialWeights>();
  try {
    weights->source = find_source(disk, spec.from);
    SafetensorsFile file(disk, weights->source);
    weights->sha256 = weights_hash(file);
    if (!spec.sha256.empty() && spec.sha256 != weights->sha256)
      bad_input(
          "{} has other weights than this run began with (sha256 {}, then {}): name the source that it had, or "
          "leave out model.init.sha256 to begin with these",
          weights->source, weights->sha256.substr(0, 12), spec.sha256.substr(0, 12));
    auto source = by_name(file, spec, model);
    const ParameterTable table = table_of(*prepared.model);
    const MatchingTokens tokens(disk, prepared, weights->source);
    models::check_patterns(spec.load, *prepared.model, "init", model);
    models::check_patterns(spec.skip, *prepared.model, "init", model);
    for (const auto& e : table.entries()) {
      const Parameter& p = e.parameter;
      const std::string what = fmt::format("{} {}", p.name, to_string(p.shape));
      const bool wanted = (spec.load.empty() || fits_any(spec.load, p.name)) && !fits_any(spec.skip, p.name);
      const auto it = source.find(p.name);
      if (!wanted)
        weights->not_loaded.push_back(what + " (as the recipe says)");
      else if (it == source.end())
        weights->not_loaded.push_back(what + " (not in the source)");
      else if (!SafetensorsFile::is_float(*it->second))
        weights->not_loaded.push_back(fmt::format("{} (the source has {})", what, it->second->stored));
      else if (tokens.has_rows_of_tokens(p.name)) {
        auto loaded = rows_of_tokens(p, *it->second, file, tokens);
        if (!loaded || loaded->rows.empty())
          weights->not_loaded.push_back(what + " (its rows are those of other tokens)");
        else
          weights->tensors.push_back(std::move(*loaded));
      } else if (!(it->second->shape == p.shape) && without_ones(it->second->shape) != without_ones(p.shape))
        weights->not_loaded.push_back(fmt::format("{} (the source has {})", what, to_string(it->second->shape)));
      else
        weights->tensors.push_back({p.name, file.read_floats(*it->second)});
      if (it != source.end()) source.erase(it);
    }
    for (const auto& [name, tensor] : source)
      weights->left_over.push_back(fmt::format("{} {}", tensor->name, to_string(tensor->shape)));
    for (const std::string& missing : weights->not_loaded)
      if (missing.starts_with(models::teacher_prefix)) {
        model.problem("teacher", fmt::format("would teach what random numbers say: {} is not among the weights of {}. "
                                             "Names are matched with [model.init] rename = {{ \"*\" = \"teacher.*\" }}",
                                             missing, spec.from));
        break;
      }
    if (weights->tensors.empty() && problems.list().size() == before)
      model.problem("init",
                    fmt::format("= {}: nothing of it fits this network. The network wants {}; the source has {}. "
                                "Names are matched with [model.init] rename",
                                spec.from, listed(weights->not_loaded, 8), listed(weights->left_over, 8)));
    if (problems.list().size() > before) return nullptr;
    report(*weights, table, prepared.recipe.notes);
    for (const std::string& note : notes_on_other_meaning(disk, prepared, weights->source))
      prepared.recipe.notes.push_back(note);
    if (tokens.unknown())
      prepared.recipe.notes.push_back(fmt::format(
          "{} was trained on a text with other tokens: rows of embeddings and scores stand for other tokens "
          "there ({} are in both texts); model.init.skip = [...] leaves them out, data.tokens = \"...\" "
          "gives this text those tokens",
          spec.from, tokens.summary()));
    else if (tokens.needed())
      prepared.recipe.notes.push_back(
          fmt::format("{} was trained on a text with other tokens: {} are in it, and have its rows; the others begin "
                      "with random numbers",
                      spec.from, tokens.summary()));
    record_start(prepared.recipe, weights->sha256);
    return weights;
  } catch (const BadInput& problem) {
    model.problem("init", fmt::format("cannot be used: {}", problem.what()));
  } catch (const DiskError& problem) {
    model.problem("init", fmt::format("cannot be used: {}", problem.what()));
  }
  return nullptr;
}

}  // namespace echelon
