#include "run/fast_memory.h"

#include <algorithm>

#include "base/text.h"
#include "parallel/composition.h"
#include "parallel/planned/plan_view.h"
#include "run/whole_bytes.h"

namespace echelon {

namespace {

// The optimizer's state is at the servers.
std::size_t bytes_of_worker(const PreparedRun& prepared, const PlanSpec& plan, int workers) {
  const auto each = std::max(1, static_cast<int>(prepared.recipe.train.shards) / workers);
  const auto largest = static_cast<std::int64_t>(prepared.batch_sequence().largest_batch());
  const std::int64_t shards = std::int64_t{each} * workers;
  return view_plan(*prepared.model, PlanLayout(plan, each), (largest + shards - 1) / shards, 0).ranks.front().all();
}

}  // namespace

PlanSpec plan_in_fast_memory(const PreparedRun& prepared, int workers, Problems& problems) {
  const Recipe& r = prepared.recipe;
  Problems elsewhere;  // check_system tells of them
  const Composition system =
      read_composition({r.system, r.rule, r.exchange, r.when, r.sync, r.codec, r.order}, elsewhere);
  const ExchangeKind::FastMemory memory = system.exchange->fast_memory();
  if (memory.bytes == 0 || workers < 2 || prepared.model->training(1).size() > 1) return {};
  const RankBytes whole = whole_model_bytes(prepared, workers, 1, false).front();
  if (whole.parameters + whole.contributions + whole.activations <= memory.bytes) return {};
  std::size_t least = whole.all();
  for (const char* recompute : {"none", "sqrt", "all"})
    for (const int prefetch : {8, 4, 2, 1, 0}) {
      PlanSpec plan{.data = 1,
                    .zero = 3,
                    .prefetch = prefetch,
                    .recompute = recompute,
                    .offload = memory.folder,
                    .offloads = "all",
                    .evaluate = "first"};
      const std::size_t bytes = bytes_of_worker(prepared, plan, workers);
      least = std::min(least, bytes);
      if (bytes > memory.bytes) continue;
      plan.data = workers;
      return plan;
    }
  problems.add({},
               fmt::format("exchange.memory: a worker needs {} at least for what it computes with at the same time, "
                           "and may have {}: take more, or more train.shards, so that each has fewer samples",
                           human_bytes(static_cast<double>(least)), human_bytes(static_cast<double>(memory.bytes))));
  return {};
}

}  // namespace echelon
