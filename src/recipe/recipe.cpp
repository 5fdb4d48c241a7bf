#include "recipe/recipe.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "recipe/settings.h"
#include "recipe/toml.h"

namespace echelon {

namespace {

constexpr std::int64_t most_steps = 1'000'000'000'000, most_batch = 1 << 24, most_shards = 1 << 16;

std::optional<double> optional_number(OptionReader& r, const std::string& key, double least, double most) {
  const double value = r.number(key, least, least, most);
  return r.has(key) ? std::optional(value) : std::nullopt;
}

void read_length(OptionReader& r, TrainSpec& train) {
  train.epochs = r.integer("epochs", 0, 1, most_steps);
  train.steps = r.integer("steps", 0, 1, most_steps);
  if (r.has("epochs") && r.has("steps"))
    r.problem("steps", "and train.epochs are both given; keep the one that says how long to train");
  if (!r.has("epochs") && !r.has("steps"))
    r.problem("epochs", "is missing: say how long to train, for example epochs = 10 (or steps = 2000)");
  if (train.epochs == 0 && train.steps == 0) train.epochs = 1;
}

void read_batch(OptionReader& r, TrainSpec& train) {
  train.batch = r.integer("batch", 64, 1, most_batch);
  train.shards_derived = !r.has("shards");
  train.shards = r.integer("shards", derived_shards(train.batch), 1, most_shards);
  train.accumulate = r.integer("accumulate", 1, 1, most_shards);
  if (train.batch % train.shards == 0) {
    if (train.batch > most_batch / train.accumulate || train.shards > most_shards / train.accumulate)
      r.problem("accumulate", fmt::format("= {} makes a batch of more than {} samples or {} shards", train.accumulate,
                                          most_batch, most_shards));
    else
      train.batch *= train.accumulate, train.shards *= train.accumulate;
    return;
  }
  std::int64_t below = train.shards;
  while (train.batch % below != 0) --below;
  std::int64_t above = train.batch + train.shards - train.batch % train.shards;
  r.problem("batch", fmt::format("= {} cannot be divided by train.shards = {}; use shards = {}, or batch = {}",
                                 train.batch, train.shards, below, above));
  train.shards = below;
}

}  // namespace

TrainSpec read_train(OptionReader& r) {
  TrainSpec train;
  read_length(r, train);
  read_batch(r, train);
  train.seed = static_cast<std::uint64_t>(r.integer("seed", 1, 0));
  train.drop_partial = r.flag("drop_partial", false);
  train.evaluate = r.flag("evaluate", true);
  train.monitor = r.text("monitor", "");
  train.target_accuracy = optional_number(r, "target_accuracy", 0, 1);
  train.target_loss = optional_number(r, "target_loss", 0, 1e30);
  train.patience = r.integer("patience", 0, 0, most_steps);
  train.eval_every = read_duration(r, "eval_every", train.eval_every);
  train.checkpoint_every = read_duration(r, "checkpoint_every", train.checkpoint_every);
  train.keep = r.integer("keep", 3, 1, 1000);
  train.log_every = r.integer("log_every", 0, 0, most_steps);
  for (const char* key : {"target_accuracy", "target_loss", "patience", "monitor"})
    if (!train.evaluate && r.has(key)) r.problem(key, "needs evaluations, but train.evaluate is false");
  if (train.patience > 0 && train.eval_every.amount <= 0)
    r.problem("patience", "counts evaluations, but there are none before the end; set eval_every_epochs = 1");
  r.done();
  return train;
}

namespace {

std::vector<std::pair<std::string, double>> read_rates(OptionReader& optim) {
  std::vector<std::pair<std::string, double>> rates;
  OptionReader table = optim.table("rates");
  for (const auto& [pattern, option] : table.options().items) {
    const double factor = table.number(pattern, 1, 0, 1e6);
    if (factor == 0) table.problem(pattern, "= 0 would compute gradients for nothing: name it in model.freeze instead");
    rates.emplace_back(pattern, factor);
  }
  return rates;
}

// A setting without its table: `lr` where `optim.lr` is meant. Called when every known key has been asked for.
void explain_misplaced(OptionReader& r) {
  std::optional<std::vector<std::string>> names;  // collected once, however many keys there are
  for (const auto& [key, option] : r.options().items) {
    if (r.asked().contains(key) || std::holds_alternative<Option::Table>(option.value)) continue;
    if (!names) names = setting_names();
    const std::string meant = setting_named(key, *names);
    if (meant.empty()) continue;
    r.ignore(key);
    const std::string table = meant.substr(0, meant.find('.'));
    r.problem(key, option.place.line > 0 ? fmt::format("is a setting of [{}]: write it in that table", table)
                                         : fmt::format("is a setting of [{}]: write {}", table, meant));
  }
}

void fill_in(Options& tree, const std::string& table, const std::string& key, decltype(Option::value) value) {
  Option& option = tree.items[table];
  if (!std::holds_alternative<Option::Table>(option.value)) {
    auto empty = std::make_shared<Options>();
    empty->where = table;
    option.value = std::move(empty);
  }
  std::get<Option::Table>(option.value)->items[key].value = std::move(value);
}

}  // namespace

std::int64_t derived_shards(std::int64_t batch) {
  std::int64_t shards = 1;
  for (std::int64_t s = 2; s <= 8; s *= 2)
    if (batch % s == 0 && (s == 2 || batch / s >= 32)) shards = s;
  return shards;
}

std::string describe_batch(std::int64_t batch, std::int64_t shards, int cores) {
  const std::int64_t each = batch / shards;
  std::string out = fmt::format("batch {} = {} shard{} of {} sample{}", batch, shards, shards == 1 ? "" : "s", each,
                                each == 1 ? "" : "s");
  const std::int64_t used = std::min<std::int64_t>(cores, shards), most = (shards + used - 1) / used;
  if (used < cores)
    out += fmt::format("; only {} of {} cores have work: raise train.shards to use more", used, cores);
  else if (used == 1)
    out += shards == 1 ? "" : "; one core runs them one after the other";
  else if (most > 1)
    out += fmt::format("; {} cores run {}{} each, one after the other", used, shards % used == 0 ? "" : "up to ", most);
  return out;
}

Recipe read_recipe(const std::string& path, LoadedOptions loaded, Problems& problems) {
  Recipe recipe;
  recipe.path = path;
  recipe.notes = std::move(loaded.notes);
  recipe.tree = std::move(loaded.tree);
  OptionReader r(recipe.tree, problems);
  recipe.title = r.text("title", "");
  OptionReader model = r.table("model"), data = r.table("data"), optim = r.table("optim"),
               schedule = r.table("schedule"), train = r.table("train"), loss = r.table("loss"),
               metrics = r.table("metrics");
  recipe.system = r.text("system", r.text("composed_from", ""));
  for (const auto& [key, table] :
       {std::pair("rule", &recipe.rule), std::pair("exchange", &recipe.exchange), std::pair("when", &recipe.when),
        std::pair("sync", &recipe.sync), std::pair("codec", &recipe.codec), std::pair("order", &recipe.order),
        std::pair("plan", &recipe.plan)})
    *table = r.table(key).options();
  if (r.has("local")) {
    r.ignore("local");
    r.problem("local",
              "is how a system's file changes a recipe; a recipe says it itself: [optim] and [model.quantise]");
  }
  r.require("model", "write [model] and name = \"lenet5\", for example; `echelon models list` shows the names");
  explain_misplaced(r);
  r.require("data", "write [data] and say where the samples are; `echelon init` shows how");
  r.done();
  recipe.model = model.options();
  recipe.data = data.options();
  recipe.optim = optim.options();
  recipe.model_name = model.text("name", model.has("layers") ? "layers" : "");
  if (r.has("model") && recipe.model_name.empty())
    model.require("name", "which network? `echelon models list` shows the names");
  recipe.start = read_start(model);
  recipe.lr = read_optim(optim).lr;
  recipe.rates = read_rates(optim);
  optim.done();
  recipe.schedule = read_schedule(schedule);
  recipe.loss = loss.options();
  const std::vector<std::string> report = metrics.texts("report", {});
  if (metrics.has("report")) recipe.report = report;
  metrics.done();
  recipe.train = read_train(train);
  if (recipe.schedule.plateau && (!recipe.train.evaluate || recipe.train.eval_every.amount <= 0))
    schedule.problem("name",
                     "= \"plateau\" looks at evaluations, but there are none before the end; set "
                     "train.eval_every_epochs = 1");
  if (recipe.train.shards_derived)
    recipe.notes.push_back(fmt::format("train.shards = {} (derived from train.batch = {})",
                                       recipe.train.shards / recipe.train.accumulate,
                                       recipe.train.batch / recipe.train.accumulate));
  if (const TrainSpec& t = recipe.train; t.accumulate > 1)
    recipe.notes.push_back(fmt::format(
        "train.accumulate = {}: a step sums the gradients of {} batches of {}; it is written as train.batch = {} in {} "
        "shards, of which a core has one at a time in memory",
        t.accumulate, t.accumulate, t.batch / t.accumulate, t.batch, t.shards));
  return recipe;
}

std::string resolved_toml(const Recipe& recipe) {
  // A deep copy: tables are shared by pointer.
  Options tree = parse_toml(write_toml(recipe.tree), recipe.path);
  const TrainSpec& train = recipe.train;
  fill_in(tree, "train", "batch", train.batch);
  if (train.accumulate > 1) fill_in(tree, "train", "accumulate", std::int64_t{1});
  fill_in(tree, "train", "shards", train.shards);
  fill_in(tree, "train", "seed", static_cast<std::int64_t>(train.seed));
  fill_in(tree, "optim", "lr", recipe.lr);
  if (tree.items.erase("system") > 0) tree.items["composed_from"].value = recipe.system;
  std::string out = fmt::format("# {} as it was run: all that it extends and every --set in it\n", recipe.path);
  for (const std::string& note : recipe.notes) out += toml_comment(note);
  return out + "\n" + write_toml(tree);
}

void record_start(Recipe& recipe, const std::string& sha256) {
  recipe.start->sha256 = sha256;
  const auto model = recipe.tree.items.find("model");
  const Place place = recipe.model.items.at("init").place;
  auto table = std::make_shared<Options>(*std::get<Option::Table>(model->second.value));
  table->items["init"] = to_option(*recipe.start, place);
  recipe.model = *table;
  model->second.value = std::move(table);
}

Optim make_optim(const Recipe& recipe) {
  Problems problems;
  OptionReader reader(recipe.optim, problems);
  Optim optim = read_optim(reader);
  problems.throw_if_any(recipe.path);
  return optim;
}

}  // namespace echelon
