#include "run/job.h"

#include <algorithm>

#include "base/sha256.h"
#include "base/text.h"
#include "models/memory.h"
#include "models/wrappers/halp.h"
#include "recipe/toml.h"
#include "world/os/host.h"

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

// What does not decide about the weights after a step, or has a fingerprint of its own. All other settings of a recipe,
// also those that are added one day, belong to it.
void forget(Options& tree, const std::string& table, std::initializer_list<const char*> keys) {
  const auto found = tree.items.find(table);
  if (found == tree.items.end()) return;
  if (auto* options = std::get_if<Option::Table>(&found->second.value))
    for (const char* key : keys) (*options)->items.erase(key);
}

std::string recipe_fingerprint(const Recipe& r) {
  Options tree = parse_toml(resolved_toml(r), r.path);
  for (const char* key : {"title", "system", "composed_from", "model", "metrics", "plan"}) tree.items.erase(key);
  forget(tree, "train",
         {"epochs", "steps", "seed", "evaluate", "target_accuracy", "target_loss", "patience", "eval_every_epochs",
          "eval_every_steps", "checkpoint_every_epochs", "checkpoint_every_steps", "keep", "log_every"});
  forget(tree, "data", {"path", "encoder", "limit_test", "cache", "cache_mib"});
  return sha256_hex(write_toml(tree));
}

bool says_fixed(const Options& data) {
  const auto it = data.items.find("partition");
  const auto* text = it == data.items.end() ? nullptr : std::get_if<std::string>(&it->second.value);
  return text && *text == "fixed";
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
  if (c->is_exact() && says_fixed(r.data))
    found.add(
        r.data.items.at("partition").place,
        "data.partition = \"fixed\" is for workers that train on samples of their own, but in exact training every "
        "worker has a part of the same batch: leave it out, or choose a system such as gossip_learning or sparknet");
  if (!c->is_exact() && r.optim.items.contains("ema"))
    found.add(r.optim.items.at("ema").place,
              "optim.ema averages the weights of exact training; here every worker has weights of its own: leave out "
              "optim.ema, or the system");
  for (const Problems::Problem& p : found.list()) problems.add(p.place, p.text);
  return c->is_exact() || !found.empty() ? nullptr : c;
}

void check_fit(const Composition& composition, const models::Model& model, const Optim& optim, std::int64_t steps,
               const data::PartitionSpec& partition, const ExpectedWorkers& world, Problems& problems) {
  const auto phases = model.training(1);
  const std::vector<std::string> slots = optim.rule->slots();
  check_composition(composition,
                    {.workers = world.count / world.plan.ranks_of_replica(),
                     .steps = steps,
                     .phases = static_cast<int>(phases.size()),
                     .carries = !phases.front().graph.carries().empty(),
                     .clips_by_norm = optim.clip.norm > 0,
                     .needs_norms = optim.rule->norm() != Rule::Norm::none || optim.rule->preconditions(),
                     .has_momentum = std::ranges::find(slots, "momentum") != slots.end(),
                     .shares_memory = world.share_memory,
                     .split = world.plan.splits_model(),
                     .fixed_data = partition.fixed,
                     .agrees = models::is_bit_centred(model)},
                    problems);
}

// How often a simulated replica has the model's bytes, besides its optimizer's state: its own, the model as others see
// it, the mean, what the exchange keeps and what is on its way. From the peak memory of LeNet-5 with 40 workers in
// every system: most took 4 to 6 MiB a worker, the exceptions are named.
double copies_in_simulation(const Composition& c) {
  if (c.exchange_name == "partial") return 80;   // a sum for each slice and message; dogwild took 19 MiB a worker
  if (c.exchange_name == "learners") return 50;  // several replicas each; crossbow: 12 MiB
  if (c.exchange_name == "neighbour" || c.codec_name != "none" || c.rule_name == "mpca") return 36;  // malt: 10 MiB
  return 20;
}

}  // namespace

void check_system(const PreparedRun& prepared, const ExpectedWorkers& world, Problems& problems) {
  const bool complete = problems.empty();
  const auto composition = read_system(prepared.recipe, problems);
  if (composition && complete)
    check_fit(*composition, *prepared.model, make_optim(prepared.recipe), prepared.total_steps, prepared.partition,
              world, problems);
}

void check_simulated_workers(const PreparedRun& prepared, int workers, Problems& problems) {
  if (!problems.empty() || !prepared.model || prepared.batches.empty()) return;
  const Recipe& recipe = prepared.recipe;
  Problems elsewhere;  // check_system tells of them
  const auto composition = read_system(recipe, elsewhere);
  const bool exact = !composition;
  std::uint64_t batch = 0;
  for (const data::BatchPhase& phase : prepared.batches) batch = std::max(batch, phase.batch);
  const auto shards = static_cast<std::uint64_t>(recipe.train.shards);
  const auto parts = shards * (exact ? 1 : static_cast<std::uint64_t>(workers));
  const std::size_t available = usable_memory_bytes();
  const models::StepMemory step = models::step_memory(
      *prepared.model, static_cast<std::int64_t>(std::max<std::uint64_t>(1, batch / parts)), available);
  const auto slots = static_cast<double>(make_optim(recipe).rule->slots().size());
  // Weights, the gradient's sum and the optimizer's state; a replica's state is saved, so there is a copy of that on
  // the worker and two on rank 0. In exact training only as many compute as a batch has shards. (Measured: 2,000
  // workers of LeNet-5 with momentum in exact training, 3.5 GiB.)
  constexpr double of_its_own = 512 << 10;  // a worker's stack, groups and messages
  const double copies = exact ? 2 + slots : copies_in_simulation(*composition) + 4 * slots;
  const double computing = exact ? std::min<double>(workers, shards) : workers;
  constexpr double of_a_pair = 300;  // what those took beyond the rest; where it lies was not looked into
  const double bytes = workers * (copies * static_cast<double>(step.parameters) + of_its_own + workers * of_a_pair) +
                       computing * static_cast<double>(step.arena + step.parameters);
  if (bytes > static_cast<double>(available))
    problems.add({}, fmt::format("{} simulated workers of this model take about {} of memory, and this machine has {}: "
                                 "simulate fewer",
                                 workers, human_bytes(bytes), human_bytes(static_cast<double>(available))));
}

void check_system(const TrainingJob& job, int workers, bool shares_memory, const std::string& file) {
  Problems problems;
  check_byzantine(job.byzantine, job.composition.get(), workers, has_labels(job.train->info()), problems);
  if (!job.composition) return problems.throw_if_any(file);
  check_fit(*job.composition, *job.model, job.make_optim(), job.total_steps, job.partition,
            {workers, shares_memory, job.plan}, problems);
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
          .partition = p.partition,
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
