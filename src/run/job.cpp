#include "run/job.h"

#include "base/sha256.h"
#include "recipe/toml.h"

namespace echelon {

namespace {

std::string model_fingerprint(const PreparedRun& p) {
  Options model = p.recipe.model;
  std::string text;
  if (p.recipe.start) {  // where the source lay does not matter, its weights do
    model.items.erase("init");
    text = fingerprint_text(*p.recipe.start);
  }
  text += write_toml(model);
  for (const models::Phase& phase : p.model->training(1))
    for (const Parameter& parameter : phase.graph.parameters())
      text += fmt::format("{} {}\n", parameter.name, to_string(parameter.shape));
  return sha256_hex(text);
}

std::string recipe_fingerprint(const Recipe& r) {
  const TrainSpec& t = r.train;
  Options optim = r.optim;  // with the rate that a resolved recipe says and this one may leave to the rule
  optim.items.try_emplace("lr", Option{r.lr});
  std::string text = write_toml(optim);
  const auto schedule = r.tree.items.find("schedule");
  if (schedule != r.tree.items.end())
    if (const auto* table = std::get_if<std::shared_ptr<Options>>(&schedule->second.value)) text += write_toml(**table);
  for (const auto& [axis, table] :
       {std::pair("rule", &r.rule), std::pair("exchange", &r.exchange), std::pair("when", &r.when),
        std::pair("sync", &r.sync), std::pair("codec", &r.codec), std::pair("order", &r.order)})
    if (!table->items.empty()) text += fmt::format("[{}]\n{}", axis, write_toml(*table));
  if (const auto transform = r.data.items.find("transform"); transform != r.data.items.end()) {
    Options only;
    only.items["transform"] = transform->second;
    text += write_toml(only);
  }
  if (!r.loss.items.empty()) text += "[loss]\n" + write_toml(r.loss);
  return sha256_hex(text + fmt::format("batch {} shards {} drop {}", t.batch, t.shards, t.drop_partial));
}

// Null for the exact synchronous training that needs no composition, and where there are problems.
std::shared_ptr<const Composition> read_system(const Recipe& r, Problems& problems) {
  Problems found;
  auto c = std::make_shared<Composition>(
      read_composition({r.system, r.rule, r.exchange, r.when, r.sync, r.codec, r.order}, found));
  if (c->is_exact() && r.order.items.contains("bytes"))
    found.add({},
              "order.bytes: exact training measures how large its buckets should be: leave out order.bytes, or "
              "take order fusion");
  if (!c->is_exact() && r.optim.items.contains("ema"))
    found.add(r.optim.items.at("ema").place,
              "optim.ema averages the weights of exact training; here every worker has weights of its own: leave out "
              "optim.ema, or the system");
  for (const Problems::Problem& p : found.list()) problems.add(p.place, p.text);
  return c->is_exact() || !found.empty() ? nullptr : c;
}

void check_fit(const Composition& composition, const models::Model& model, const Optim& optim, std::int64_t steps,
               const ExpectedWorkers& world, Problems& problems) {
  const auto phases = model.training(1);
  const std::vector<std::string> slots = optim.rule->slots();
  check_composition(composition,
                    {.workers = world.count,
                     .steps = steps,
                     .phases = static_cast<int>(phases.size()),
                     .carries = !phases.front().graph.carries().empty(),
                     .clips_by_norm = optim.clip.norm > 0,
                     .needs_norms = optim.rule->norm() != Rule::Norm::none,
                     .has_momentum = std::ranges::find(slots, "momentum") != slots.end(),
                     .shares_memory = world.share_memory},
                    problems);
}

}  // namespace

void check_system(const PreparedRun& prepared, const ExpectedWorkers& world, Problems& problems) {
  const bool complete = problems.empty();
  const auto composition = read_system(prepared.recipe, problems);
  if (composition && complete)
    check_fit(*composition, *prepared.model, make_optim(prepared.recipe), prepared.total_steps, world, problems);
}

void check_system(const TrainingJob& job, int workers, bool shares_memory, const std::string& file) {
  if (!job.composition) return;
  Problems problems;
  check_fit(*job.composition, *job.model, job.make_optim(), job.total_steps, {workers, shares_memory}, problems);
  problems.throw_if_any(file);
}

TrainingJob make_job(const PreparedRun& p) {
  const TrainSpec& t = p.recipe.train;
  Problems problems;
  auto composition = read_system(p.recipe, problems);
  problems.throw_if_any(p.recipe.path);
  return {.model = p.model.get(),
          .train = p.train,
          .validation = p.validation,
          .test = p.test,
          .metrics = p.metrics,
          .monitor = p.monitor,
          .make_optim = [&p] { return make_optim(p.recipe); },
          .schedule = p.schedule(),
          .batches = p.batches,
          .drop_partial = t.drop_partial,
          .shards = static_cast<int>(t.shards),
          .seed = t.seed,
          .total_steps = p.total_steps,
          .eval_every = t.eval_every,
          .checkpoint_every = t.checkpoint_every,
          .target_accuracy = t.target_accuracy,
          .target_loss = t.target_loss,
          .patience = t.patience,
          .plateau = p.recipe.schedule.plateau,
          .model_fingerprint = model_fingerprint(p),
          .data_fingerprint = p.train->info().fingerprint,
          .recipe_fingerprint = recipe_fingerprint(p.recipe),
          .composition = std::move(composition)};
}

}  // namespace echelon
