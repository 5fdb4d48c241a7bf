#include "run/job.h"

#include "base/sha256.h"
#include "recipe/toml.h"

namespace echelon {

namespace {

std::string model_fingerprint(const PreparedRun& p) {
  std::string text = write_toml(p.recipe.model);
  for (const models::Phase& phase : p.model->training(1))
    for (const Parameter& parameter : phase.graph.parameters())
      text += fmt::format("{} {}\n", parameter.name, to_string(parameter.shape));
  return sha256_hex(text);
}

std::string recipe_fingerprint(const Recipe& r) {
  const TrainSpec& t = r.train;
  std::string text = write_toml(r.optim);
  const auto schedule = r.tree.items.find("schedule");
  if (schedule != r.tree.items.end())
    if (const auto* table = std::get_if<std::shared_ptr<Options>>(&schedule->second.value)) text += write_toml(**table);
  for (const auto& [axis, table] :
       {std::pair("rule", &r.rule), std::pair("exchange", &r.exchange), std::pair("sync", &r.sync),
        std::pair("codec", &r.codec), std::pair("order", &r.order)})
    if (!table->items.empty()) text += fmt::format("[{}]\n{}", axis, write_toml(*table));
  return sha256_hex(text + fmt::format("batch {} shards {} drop {}", t.batch, t.shards, t.drop_partial));
}

}  // namespace

TrainingJob make_job(const PreparedRun& p) {
  const TrainSpec& t = p.recipe.train;
  return {.model = p.model.get(),
          .train = p.train,
          .test = p.test,
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
          .model_fingerprint = model_fingerprint(p),
          .data_fingerprint = p.train->info().fingerprint,
          .recipe_fingerprint = recipe_fingerprint(p.recipe)};
}

}  // namespace echelon
