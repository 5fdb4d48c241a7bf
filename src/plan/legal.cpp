#include "plan/legal.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "plan/batch_split.h"
#include "plan/mesh.h"
#include "plan/recompute.h"
#include "plan/schedule.h"

namespace echelon {

namespace {

void refuse_degrees(PlanSpec& plan, const PlanFacts& facts, std::vector<std::string>& why) {
  const auto layers = static_cast<int>(facts.layers.size());
  if (plan.stages() > layers && !plan.splits_batch())
    why.push_back(fmt::format("pipeline={}{} makes {} stages, but the network has {} layer{}", plan.pipeline,
                              plan.chunks > 1 ? fmt::format(",chunks={}", plan.chunks) : "", plan.stages(), layers,
                              layers == 1 ? "" : "s"));
  if (facts.slices % plan.tensor != 0)
    why.push_back(fmt::format("tensor={} does not divide model.slices = {}{}", plan.tensor, facts.slices,
                              facts.slices > 1 ? ""
                                               : fmt::format(": the recipe's layers are whole, and --set "
                                                             "model.slices={} cuts them (which is another result)",
                                                             plan.tensor)));
  if (facts.workers == 0) return;
  const std::int64_t each = std::int64_t{plan.pipeline} * plan.tensor;  // ranks of a replica
  const std::string replica = plan.tensor > 1 ? fmt::format("pipeline={} times tensor={}", plan.pipeline, plan.tensor)
                                              : fmt::format("pipeline={}", plan.pipeline);
  if (plan.data == 0 && facts.workers % each != 0)
    why.push_back(fmt::format("{} does not divide {} workers", replica, facts.workers));
  if (plan.data > 0 && plan.data * each != facts.workers)
    why.push_back(fmt::format("data={} times {} is a plan for {} workers, and there {} {}", plan.data, replica,
                              plan.data * each, facts.workers == 1 ? "is" : "are", facts.workers));
  if (plan.data == 0) plan.data = static_cast<int>(std::max<std::int64_t>(1, facts.workers / each));
}

void refuse_cuts(const PlanSpec& plan, const PlanFacts& facts, std::vector<std::string>& why) {
  if (plan.cuts.empty()) return;
  if (static_cast<int>(plan.cuts.size()) != plan.stages() - 1)
    why.push_back(
        fmt::format("cuts has {} layer{}, and {} stage{} begin at {}: leave it out, or name the first layer of "
                    "every stage but the first",
                    plan.cuts.size(), plan.cuts.size() == 1 ? "" : "s", plan.stages(), plan.stages() == 1 ? "" : "s",
                    plan.stages() - 1));
  std::ptrdiff_t before = 0;
  for (const std::string& name : plan.cuts) {
    const auto at = std::ranges::find(facts.layers, name);
    if (at == facts.layers.end())
      why.push_back(fmt::format("cuts: there is no layer '{}'{}", name, did_you_mean(name, facts.layers)));
    else if (at - facts.layers.begin() <= before)
      why.push_back(fmt::format("cuts: layer '{}' does not come after the stage before it has begun", name));
    else
      before = at - facts.layers.begin();
  }
}

void refuse_schedule(const PlanSpec& plan, const PlanFacts& facts, std::vector<std::string>& why) {
  if (plan.splits_model() && plan.data > facts.shards)
    why.push_back(
        fmt::format("each of {} replicas of a split model needs a micro-batch, and a batch has {} (train.shards): take "
                    "fewer replicas, or --set train.shards={}",
                    plan.data, facts.shards, plan.data));
  if (plan.pipeline == 1) {
    if (plan.chunks > 1)
      why.push_back(fmt::format("chunks={} needs a pipeline of two ranks or more", plan.chunks));
    else if (plan.schedule != PlanSpec{}.schedule)
      why.push_back(fmt::format(
          "schedule={} says in which order ranks run the stages of a pipeline, and there is none: add pipeline=2 or "
          "more, or leave it out",
          plan.schedule));
    return;
  }
  const ScheduleKind* kind = find_schedule(plan.schedule);
  if (!kind || plan.data == 0) return;
  if ((plan.schedule == "interleaved" || plan.goes_both_ways()) && facts.shards % plan.data != 0)
    why.push_back(
        fmt::format("schedule={} needs replicas with equally many micro-batches, and data={} does not divide "
                    "train.shards = {}",
                    plan.schedule, plan.data, facts.shards));
  if (const std::string refusal = kind->refusal({plan.pipeline, std::max(1, facts.shards / plan.data), plan.chunks});
      !refusal.empty())
    why.push_back(fmt::format("schedule={} {}", plan.schedule, refusal));
  if (plan.is_message_driven() && plan.data > 1)
    why.push_back(
        fmt::format("schedule=ampnet has one pipeline, and data={} are several: leave out data, or take pipeline={}",
                    plan.data, facts.workers));
  if (plan.is_message_driven() && plan.tensor > 1)
    why.emplace_back("schedule=ampnet runs whatever comes first, and parts of a stage need the same order: tensor=1");
  if (plan.is_message_driven() && facts.carries)
    why.emplace_back(
        "schedule=ampnet has micro-batches of several steps under way, and this model carries values from step to "
        "step");
  if (kind->own_result && !facts.shared_weight.empty())
    why.push_back(
        fmt::format("schedule={} updates every stage by itself, and {} is read by several layers: in a gpt, set "
                    "model.tied = false",
                    plan.schedule, facts.shared_weight));
}

void refuse_sharing(const PlanSpec& plan, const PlanFacts& facts, std::vector<std::string>& why) {
  if (const std::string refusal = recompute_refusal(plan.recompute, facts.layers);
      !refusal.empty() && !facts.layers.empty())
    why.push_back(refusal);
  if (plan.evaluate == "first" && !plan.splits_model())
    why.emplace_back("evaluate=first is for a model that is split: without a split every rank has all of it");
  if (plan.has_own_result() && (plan.zero > 0 || plan.recompute != "none" || !plan.offload.empty()))
    why.push_back(fmt::format(
        "schedule={} keeps several versions of the weights whole: leave out zero, recompute, offload", plan.schedule));
  if (plan.offloads == "all" && plan.offload.empty())
    why.emplace_back("offloads=all needs a folder for what is not in memory: offload=FOLDER");
  if (plan.offloads == "all" && plan.zero < 3)
    why.push_back(fmt::format("offloads=all needs parameters that are fetched when they are used: zero=3, not zero={}",
                              plan.zero));
  if (plan.zero == 0 || plan.data == 0) return;
  const bool two_lines = plan.goes_both_ways();
  if (plan.data == 1 && !two_lines && !plan.offloads_parameters())
    why.push_back(fmt::format("zero={} shares the state of a stage among replicas, and there is one", plan.zero));
  if (plan.zero >= 2 && two_lines)
    why.push_back(fmt::format("zero={} needs ranks of a stage that run the same list: schedule={} has two", plan.zero,
                              plan.schedule));
  if (plan.zero >= 2 && facts.shards % plan.data != 0)
    why.push_back(
        fmt::format("zero={} needs replicas with equally many micro-batches, and data={} does not divide "
                    "train.shards = {}",
                    plan.zero, plan.data, facts.shards));
}

// Under a system every replica has weights of its own, and each of its ranks exchanges the one stage that it has.
void refuse_under_system(const PlanSpec& plan, const PlanFacts& facts, std::vector<std::string>& why) {
  if (facts.system.empty()) return;
  if (plan.has_own_result())
    why.push_back(fmt::format("schedule={} updates stages by itself, and so does system {}: take schedule=1f1b",
                              plan.schedule, facts.system));
  if (plan.zero > 0 && !plan.offloads_parameters())
    why.push_back(fmt::format(
        "zero={} shares state among replicas with the same weights, and under system {} each has "
        "its own: leave out zero, or add offload=FOLDER,offloads=all, with which each has all of it in files",
        plan.zero, facts.system));
  if (plan.stages() != plan.pipeline || plan.goes_both_ways() || plan.splits_batch())
    why.push_back(
        fmt::format("a rank exchanges one stage under system {}, and here it would have several: take "
                    "schedule=1f1b, gpipe or zero_bubble without chunks and without split = \"batch\"",
                    facts.system));
  if (plan.data == 1 && facts.workers > 1)
    why.push_back(
        fmt::format("one replica has no other to exchange with under system {}: take {} workers, or leave "
                    "out --system",
                    facts.system, 2 * plan.ranks_of_replica()));
}

void refuse_free_tasks(const PlanSpec& plan, const PlanFacts& facts, std::vector<std::string>& why) {
  if (!plan.frees_tasks()) return;
  if (plan.pipeline > 1 || plan.tensor > 1 || plan.zero > 0)
    why.emplace_back(
        "tasks=free lets any rank run any micro-batch, so each has the whole model: leave out pipeline, tensor and "
        "zero, or tasks");
  if (plan.data == 1) why.emplace_back("tasks=free needs two replicas or more that take micro-batches from each other");
  if (!facts.system.empty())
    why.push_back(fmt::format("tasks=free is exact training, and not system {}: leave out one of them", facts.system));
}

void refuse_sequence(const PlanSpec& plan, std::vector<std::string>& why) {
  if (!plan.sequence) return;
  if (plan.tensor == 1)
    why.emplace_back("sequence=true splits rows over the ranks of tensor parallel layers: it needs tensor=2 or more");
  if (plan.splits_batch())
    why.emplace_back("sequence=true cannot be combined with split = \"batch\", whose layers have all rows on one rank");
}

// How far one plan is from another: a changed degree counts by its ratio, a changed schedule as a factor of two.
// Whoever shares or recomputes wants less memory, so leaving that out is worse than another degree.
double distance(const PlanSpec& a, const PlanSpec& b) {
  const auto ratio = [](int x, int y) { return std::abs(std::log2(std::max(x, 1)) - std::log2(std::max(y, 1))); };
  return 2 * ratio(a.pipeline, b.pipeline) + 2 * ratio(a.tensor, b.tensor) + (a.data > 0 ? ratio(a.data, b.data) : 0) +
         ratio(a.chunks, b.chunks) + (a.sequence == b.sequence ? 0 : 1) + (a.schedule == b.schedule ? 0 : 1) +
         std::abs(a.zero - b.zero) + (a.zero > 0 && b.zero == 0 ? 2 : 0) + (a.recompute == b.recompute ? 0 : 3);
}

}  // namespace

std::vector<std::string> refusals(PlanSpec& plan, const PlanFacts& facts) {
  std::vector<std::string> why;
  plan.alternating = alternating_stages(plan.layers, facts.layers);
  refuse_degrees(plan, facts, why);
  refuse_cuts(plan, facts, why);
  refuse_schedule(plan, facts, why);
  refuse_sharing(plan, facts, why);
  refuse_rules(plan, facts, why);
  refuse_sequence(plan, why);
  refuse_free_tasks(plan, facts, why);
  refuse_batch_split(plan, facts, why);
  if (!plan.splits_model()) return why;
  if (facts.phases > 1)
    why.push_back(fmt::format("a model with {} phases in a training step cannot be split", facts.phases));
  refuse_under_system(plan, facts, why);
  if (facts.cores > 1)
    why.push_back(
        fmt::format("a rank of a split model has one core: leave out --cores {}, or take {} times as many workers",
                    facts.cores, facts.cores));
  return why;
}

std::vector<PlanSpec> legal_plans(const PlanFacts& facts) {
  std::vector<PlanSpec> plans;
  const auto add = [&](PlanSpec plan) {
    for (const char* what : {"none", "all", "sqrt"})
      for (plan.zero = 0, plan.recompute = what; plan.zero <= 3; ++plan.zero)
        if (PlanSpec filled = plan; refusals(filled, facts).empty()) plans.push_back(filled);
  };
  const auto add_schedules = [&](PlanSpec plan) {
    for (const ScheduleKind& kind : schedule_kinds()) {
      if (kind.own_result) continue;
      plan.schedule = kind.name;
      for (plan.chunks = 1; plan.chunks == 1 || plan.stages() <= static_cast<int>(facts.layers.size()); ++plan.chunks)
        add(plan);
    }
  };
  for (int each = 1; each <= facts.workers; ++each) {  // ranks of a replica
    if (facts.workers % each != 0) continue;
    for (int tensor = 1; tensor <= std::min(each, facts.slices); ++tensor) {
      if (each % tensor != 0) continue;
      const PlanSpec plan{.data = facts.workers / each, .pipeline = each / tensor, .tensor = tensor};
      plan.pipeline == 1 ? add(plan) : add_schedules(plan);
    }
  }
  return plans;
}

PlanSpec nearest_plan(const PlanSpec& plan, const PlanFacts& facts) {
  PlanSpec nearest{.data = 1};
  double least = std::numeric_limits<double>::infinity();
  // With the rules of layers, mended where they cannot be followed, if there is any such plan; else without them.
  const ScheduleKind* kind = find_schedule(plan.schedule);
  for (const bool with_rules : {true, false}) {
    if (with_rules && plan.layers.empty() && plan.dimensions.empty()) continue;
    for (PlanSpec legal : legal_plans(facts)) {
      if (with_rules) {
        legal.layers = plan.layers, legal.scheme = plan.scheme, legal.dimensions = plan.dimensions;
        legal.layers = mended_rules(legal, facts);
        if (!refusals(legal, facts).empty()) continue;
      }
      PlanSpec same = legal;  // a plan with another result would be no substitute
      same.schedule = plan.schedule, same.sync = plan.sync, same.active = plan.active, same.updates = plan.updates;
      if (kind && kind->own_result && legal.pipeline > 1 && refusals(same, facts).empty()) legal = same;
      PlanSpec by_rows = legal;
      by_rows.sequence = plan.sequence;
      if (refusals(by_rows, facts).empty()) legal = by_rows;
      if (legal.splits_model()) legal.neighbours = plan.neighbours;
      PlanSpec free = legal;
      free.tasks = plan.tasks;
      if (refusals(free, facts).empty()) legal = free;
      PlanSpec in_files = legal;  // whoever keeps state in files has no memory for it
      in_files.offload = plan.offload, in_files.offloads = legal.zero == 3 ? plan.offloads : "state";
      if (refusals(in_files, facts).empty()) legal = in_files;
      if (const double d = distance(plan, legal); d < least) least = d, nearest = legal;
    }
    if (least < std::numeric_limits<double>::infinity()) break;
  }
  return nearest;
}

namespace {

std::string nearest_text(const PlanSpec& nearest, const PlanSpec& asked) {
  std::string text = fmt::format("; the nearest plan that works is --plan {}", to_string(nearest));
  if (asked.splits_model() && !nearest.splits_model()) text += " (the model whole on each worker)";
  if (nearest.layers.empty() && !asked.layers.empty()) return text + ", without rules of layers";
  for (const LayerRule& rule : nearest.layers)
    if (std::ranges::find(asked.layers, rule) == asked.layers.end()) text += fmt::format(", {}", to_string(rule));
  return nearest.layers == asked.layers || asked.layers.empty() ? text : text + " in a file";
}

}  // namespace

PlanSpec check_plan(PlanSpec plan, const PlanFacts& facts, Place place, Problems& problems) {
  const PlanSpec asked = plan;
  const std::vector<std::string> why = refusals(plan, facts);
  for (std::size_t i = 0; i < why.size(); ++i) {
    std::string text = "plan: " + why[i];
    if (i + 1 == why.size() && facts.workers > 0) {
      PlanFacts curable = facts;  // what no other plan would cure is said above
      curable.cores = 1;
      if (!legal_plans(curable).empty()) text += nearest_text(nearest_plan(asked, curable), asked);
    }
    problems.add(place, text);
  }
  return plan;
}

}  // namespace echelon
