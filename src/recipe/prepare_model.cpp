#include <algorithm>
#include <numeric>

#include "data/table/encoder.h"
#include "graph/attributes.h"
#include "graph/graph.h"
#include "models/network.h"
#include "models/wrappers/fine_tuning.h"
#include "models/zoo.h"
#include "recipe/prepare_parts.h"

namespace echelon {

namespace {

// Binary targets are 0 or 1 (or a probability between them).
void check_zero_or_one(const data::Dataset& dataset, OptionReader& loss) {
  data::Sample sample(dataset.fields());
  const std::size_t target = dataset.fields().size() - 1;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(dataset.size(), 1000); ++i) {
    dataset.get(i, {}, sample.ref());
    for (const float value : sample.field<float>(target))
      if (!(value >= 0 && value <= 1))
        return loss.problem("name",
                            fmt::format("= \"binary\" needs targets that are 0 or 1, but sample {} has {}", i, value));
  }
}

// What the data say about the loss.
models::LossSpec usual_loss(const data::DatasetInfo& info) {
  models::LossSpec loss;
  if (!info.targets.empty() && std::ranges::all_of(info.targets, &data::TargetColumn::binary)) loss.name = "binary";
  return loss;
}

// The [loss] of a recipe for these targets; what needs the training samples is computed from them. If anything about it
// is wrong, one that fits takes its place, so that the network has no problems of its own because of it.
models::LossSpec read_loss_for(const PreparedRun& run, const models::InputSpec& inputs, Problems& problems) {
  const std::size_t before = problems.list().size();
  OptionReader table(run.recipe.loss, problems);
  models::LossSpec loss = models::read_loss(table);
  const bool classes = inputs.classes > 0;
  if (inputs.target.name.empty())
    problems.add(table.place("name"), "[loss] is for networks that learn from targets, but the data have none");
  if (loss.name.empty()) loss.name = classes ? "cross_entropy" : inputs.loss.name.empty() ? "mse" : inputs.loss.name;
  if (classes != (loss.name == "cross_entropy"))
    table.problem("name", classes ? fmt::format("= \"{}\" is for numbers, but the targets are classes: use "
                                                "cross_entropy",
                                                loss.name)
                                  : "= \"cross_entropy\" is for classes, but the targets are numbers: use mse, mae, "
                                    "huber, quantile, or binary for targets that are 0 or 1");
  if (!loss.class_weights.empty() && std::ssize(loss.class_weights) != inputs.classes)
    table.problem("class_weights",
                  fmt::format("has {} numbers, but there are {} classes", loss.class_weights.size(), inputs.classes));
  if (problems.list().size() > before) return {.name = classes ? "cross_entropy" : inputs.loss.name};
  if (!run.train || run.described) return loss;
  if (loss.balanced && !data::has_labels(run.train->info())) {
    table.problem("class_weights", "= \"balanced\" counts the samples of each class, but a sample has no one class");
  } else if (loss.balanced) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(inputs.classes));
    for (std::uint64_t i = 0; i < run.train->size(); ++i) {
      const std::int32_t label = run.train->label(i);
      if (label >= 0 && label < inputs.classes) ++counts[static_cast<std::size_t>(label)];
    }
    loss.class_weights = models::balanced_weights(counts);
  }
  if (loss.name == "binary" && inputs.target.type.dtype == DType::f32) check_zero_or_one(*run.train, table);
  return loss;
}

// The columns of a table's ids that a value is made of; none where that is not plain to see.
std::vector<std::size_t> id_columns(const Graph& graph, const models::InputSpec::Field& ids, Value value) {
  const ValueInfo& info = graph.info(value);
  if (info.source == ValueInfo::Source::input) {
    if (graph.inputs()[static_cast<std::size_t>(info.producer)].name != ids.name) return {};
    std::vector<std::size_t> all(ids.categories.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  if (info.source != ValueInfo::Source::node) return {};
  const Node& node = graph.nodes()[static_cast<std::size_t>(info.producer)];
  if (node.op->name() == "reshape") return id_columns(graph, ids, node.in[0]);
  if (node.op->name() != "slice" || graph.type(node.in[0]).shape.rank() != 2) return {};
  const Attributes cut = attributes_of(*node.op);
  const std::vector<std::size_t> from = id_columns(graph, ids, node.in[0]);
  const auto begin = static_cast<std::size_t>(cut.at("begin")), end = static_cast<std::size_t>(cut.at("end"));
  if (cut.at("axis") != 1 || end > from.size()) return {};
  return {from.begin() + static_cast<std::ptrdiff_t>(begin), from.begin() + static_cast<std::ptrdiff_t>(end)};
}

// Every id of a table's column has a row in the embedding that looks it up.
void check_embeddings(const PreparedRun& run, const models::Model& model, OptionReader& table) {
  const data::DatasetInfo& info = run.train->info();
  if (!info.table || run.described) return;
  std::vector<std::string> names;
  for (const auto& feature : info.table->features())
    if (feature.embedded) names.push_back(feature.name);
  const Graph graph = model.evaluation(1);
  for (const auto& field : model.inputs().inputs) {
    if (field.categories.size() != names.size()) continue;
    for (const Node& node : graph.nodes()) {
      if (node.op->name() != "embedding") continue;
      const std::int64_t rows = graph.type(node.in[0]).shape[0];
      std::string most;
      std::int64_t needed = rows;
      for (const std::size_t c : id_columns(graph, field, node.in[1]))
        if (field.categories[c] > needed) needed = field.categories[c], most = names[c];
      if (needed > rows)
        table.problem("layers", fmt::format("has the layer '{}' with rows = {}, but column '{}' has {} different ids "
                                            "(one is for values not seen in training): set rows = {}",
                                            node.layer, rows, most, needed, needed));
    }
  }
}

}  // namespace

void make_model(PreparedRun& run, Problems& problems) {
  const Recipe& recipe = run.recipe;
  if (recipe.model_name.empty()) return;
  OptionReader table(recipe.model, problems);
  models::InputSpec inputs;
  if (run.train) {
    inputs = input_spec(run.train->info());
  } else {
    // Without data, the settings can still be checked on what the network is usually trained on. A network that is
    // written out has no usual data.
    const auto zoo = models::zoo();
    const auto entry = std::find_if(zoo.begin(), zoo.end(), [&](const auto& e) { return e.name == recipe.model_name; });
    if (entry != zoo.end() && recipe.model_name == "layers") return;
    if (entry != zoo.end()) inputs = entry->usual_inputs();
  }
  if (run.train) inputs.loss = usual_loss(run.train->info());
  if (recipe.tree.items.contains("loss")) inputs.loss = read_loss_for(run, inputs, problems);
  auto model = models::make_model(recipe.model_name, table, inputs);
  if (model && !recipe.rates.empty()) {
    OptionReader rates = OptionReader(recipe.optim, problems).table("rates");
    for (const auto& [pattern, factor] : recipe.rates) models::check_patterns({pattern}, *model, pattern, rates);
    model = models::with_rates(std::move(model), recipe.rates);
  }
  if (const auto patterns = OptionReader(recipe.model, problems).texts("freeze", {}); model && !patterns.empty())
    for (const std::string& sentence : models::frozen_in_words(patterns, *model)) run.recipe.notes.push_back(sentence);
  if (run.train && model && problems.empty()) check_embeddings(run, *model, table);
  if (run.train) run.model = std::move(model);
}

}  // namespace echelon
