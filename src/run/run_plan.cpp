#include "run/run_plan.h"

#include "base/error.h"
#include "graph/program.h"
#include "parallel/composition.h"
#include "parallel/planned/stage_plans.h"
#include "plan/place.h"
#include "plan/stages.h"
#include "run/plan_file.h"

namespace echelon {

PlanSpec read_run_plan(Disk& disk, const Recipe& recipe, const std::string& flag, Problems& problems) {
  if (!flag.empty() && flag.find('=') == std::string::npos) try {
      return read_plan_file(disk, flag, problems).plan;
    } catch (const Error& e) {
      problems.add(Place(0, "--plan " + flag), e.what());
      return {};
    }
  const Options table = flag.empty() ? recipe.plan : plan_options(flag, problems);
  OptionReader reader(table, problems);
  return read_plan(reader);
}

PlanFacts plan_facts(const PreparedRun& prepared, int workers, int cores) {
  const auto phases = prepared.model->training(1);
  PlanFacts facts{.workers = workers,
                  .shards = static_cast<int>(prepared.recipe.train.shards),
                  .phases = static_cast<int>(phases.size()),
                  .cores = cores};
  const Graph graph = optimise(phases.front().graph);
  facts.slices = slices_of(graph);
  for (const LayerWork& l : layer_work(graph)) facts.layers.push_back(l.layer);
  facts.splits = layer_splits(graph);
  facts.carries = !graph.carries().empty();
  std::vector<std::string> read_by(graph.parameters().size());  // a layer
  for (const Node& node : graph.nodes())
    for (const Value v : node.in)
      if (const ValueInfo& info = graph.info(v); info.source == ValueInfo::Source::parameter && !node.backward) {
        std::string& layer = read_by[static_cast<std::size_t>(info.producer)];
        if (!layer.empty() && layer != node.layer)
          facts.shared_weight = graph.parameters()[static_cast<std::size_t>(info.producer)].name;
        layer = node.layer;
      }
  const Recipe& r = prepared.recipe;
  Problems elsewhere;  // check_system tells of them
  const Composition system =
      read_composition({r.system, r.rule, r.exchange, r.when, r.sync, r.codec, r.order}, elsewhere);
  if (!system.is_exact()) facts.system = r.system.empty() ? "composed" : r.system;
  return facts;
}

bool cores_can_be_ranks(const PreparedRun& prepared, const PlanSpec& plan) {
  return plan.splits_model() && plan_facts(prepared, 0, 1).system.empty();
}

PlanSpec check_run_plan(const PreparedRun& prepared, const PlanSpec& plan, int workers, int cores, Problems& problems) {
  if (plan == PlanSpec{}) return {.data = workers};  // every rank has the whole model
  const std::size_t before = problems.list().size();
  PlanSpec checked = check_plan(plan, plan_facts(prepared, workers, cores), {}, problems);
  if (checked.scheme != "pipelined" || workers == 0 || problems.list().size() > before) return checked;
  const auto shards = static_cast<std::int64_t>(prepared.recipe.train.shards);
  const auto largest = static_cast<std::int64_t>(prepared.batch_sequence().largest_batch());
  const std::int64_t samples = (largest + shards - 1) / shards;
  const PlanLayout layout(checked, static_cast<int>(shards));
  checked.segments = StagePlans(*prepared.model, layout, samples).segments(samples);
  return checked;
}

}  // namespace echelon
