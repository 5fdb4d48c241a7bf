#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "models/memory.h"
#include "recipe/prepare_parts.h"
#include "world/os/cores.h"
#include "world/os/host.h"

namespace echelon {

namespace {

std::string memory_text(std::size_t bytes) { return human_bytes(static_cast<double>(bytes)); }

}  // namespace

void check_memory(PreparedRun& run, OptionReader& train, Problems& problems) {
  const Recipe& recipe = run.recipe;
  std::uint64_t batch = 0;
  for (const data::BatchPhase& phase : run.batches) batch = std::max(batch, phase.batch);
  batch = std::min<std::uint64_t>(batch, run.train->size());
  const std::int64_t shards = recipe.train.shards;
  const auto each =
      static_cast<std::int64_t>((batch + static_cast<std::uint64_t>(shards) - 1) / static_cast<std::uint64_t>(shards));
  // Exact training always computes whole shards. Systems split each shard's samples between workers, and how many
  // workers there will be is not known here: one sample at least.
  const bool exact = recipe.rule.items.empty() && recipe.exchange.items.empty() && recipe.sync.items.empty();
  const std::size_t available = usable_memory_bytes();
  models::StepMemory one, whole;
  try {
    one = models::step_memory(*run.model, exact ? each : 1, available);
    whole = exact || one.least() > available ? one : models::step_memory(*run.model, each, available);
  } catch (const TooLarge& e) {
    train.problem("batch", fmt::format("= {} cannot be computed: {}", recipe.train.batch, e.what()));
    return;
  }
  if (2 * one.parameters > available) {
    problems.add(recipe.model.place,
                 fmt::format("model {} needs {} of memory for its weights and their gradients, and this machine has "
                             "{}: make the model smaller",
                             recipe.model_name, memory_text(2 * one.parameters), memory_text(available)));
    return;
  }
  if (one.least() > available) {
    train.problem("batch", fmt::format("= {}: a training step needs {} of memory, and this machine has {}: make {}"
                                       "train.batch or the model smaller",
                                       recipe.train.batch, memory_text(one.least()), memory_text(available),
                                       each > 1 ? "train.shards larger, or " : ""));
    return;
  }
  const auto cores = static_cast<std::size_t>(std::min<std::int64_t>(available_cores(), shards));
  const std::size_t slots = make_optim(recipe).rule->slots().size();
  double sample = 0;
  for (const data::Field& field : run.train->fields()) sample += static_cast<double>(field.bytes());
  const double all = static_cast<double>(whole.parameters) * static_cast<double>(1 + slots + cores) +
                     static_cast<double>(whole.arena) * static_cast<double>(cores) +
                     sample * static_cast<double>(batch);
  if (all > static_cast<double>(available))
    run.recipe.notes.push_back(fmt::format(
        "training takes about {} of memory with one worker on {} core{}, and this machine has {}: it may not fit",
        human_bytes(all), cores, cores == 1 ? "" : "s", memory_text(available)));
}

}  // namespace echelon
