// `echelon plan`: what a plan makes of a recipe's model, before anything runs.

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/foresight/plan_rank.h"
#include "cli/verbs.h"
#include "parallel/planned/plan_view.h"
#include "plan/picture.h"
#include "run/memory_limit.h"
#include "run/plan_file.h"
#include "run/run_plan.h"
#include "world/os/disk.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

struct PlanSettings {
  std::string recipe, plan, svg, memory;
  std::vector<std::string> overrides;
  int workers = 1;
  bool json = false;
};

std::string plan_text(const PlanSpec& plan) {
  std::string text = to_string(plan);
  for (const LayerRule& rule : plan.layers) text += "\n  " + to_string(rule);
  return text;
}

std::string ranks_text(const std::vector<int>& ranks) { return fmt::format("{}", fmt::join(ranks, " ")); }

std::string layers_text(const std::vector<std::string>& layers) {
  return layers.size() == 1 ? layers.front()
                            : fmt::format("{} ... {} ({})", layers.front(), layers.back(), layers.size());
}

std::string bytes_text(std::size_t bytes) { return human_bytes(static_cast<double>(bytes)); }

void print_text(const PlanSpec& plan, const PlanLayout& layout, const PlanView& view, std::int64_t samples) {
  for (const LayerRule& rule : plan.layers) fmt::print("{}\n", to_string(rule));
  fmt::print("plan {}: {} replica{} of {} rank{}; a batch is {} micro-batches of {} sample{}\n\n", to_string(plan),
             plan.data, plan.data == 1 ? "" : "s", layout.ranks_of_replica(), layout.ranks_of_replica() == 1 ? "" : "s",
             layout.shards(), samples, samples == 1 ? "" : "s");
  double work = 0;
  for (const StageView& s : view.stages) work += s.work;
  fmt::print("stage  ranks       weights     FLOPs  work   sends      layers\n");
  for (const StageView& s : view.stages)
    fmt::print("{:<5}  {:<10}  {:>8}  {:>8}  {:>3.0f} %  {:>9}  {}\n",
               layout.parts() > 1 ? fmt::format("{}.{}", s.stage, s.part) : fmt::format("{}", s.stage),
               fit(ranks_text(s.ranks), 10), human_count(static_cast<double>(s.weights)), human_count(s.flops),
               100 * s.work / work, human_bytes(s.sends), layers_text(s.layers));
  fmt::print("\nFLOPs and bytes sent are those of one micro-batch, forward and backward.\n\n");
  fmt::print(
      "rank   parameters  contributions      state  activations   messages      model        all    in files  sends\n");
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    const RankBytes& b = view.ranks[r];
    fmt::print("{:<5}  {:>10}  {:>13}  {:>9}  {:>11}  {:>9}  {:>9}  {:>9}  {:>10}  {}\n", r, bytes_text(b.parameters),
               bytes_text(b.contributions), bytes_text(b.state), bytes_text(b.activations), bytes_text(b.messages),
               bytes_text(b.model), bytes_text(b.all()), bytes_text(b.disk), human_bytes(view.sent[r]));
  }
  fmt::print("\nsends: between stages and their parts in a step; what the sum over replicas sends is not in it\n");
  fmt::print("\n{}: idle {:.1f} % of the time, if work takes the time that it is balanced by\n{}",
             layout.splits_batch() ? "in turns" : plan.schedule, 100 * view.schedule.bubble(),
             draw_schedule(view.schedule, terminal_columns(1)));
  fmt::print("digits: forward passes by micro-batch; small letters: backward passes; capitals: weight gradients\n");
  if (plan.is_message_driven()) {
    fmt::print(
        "\nA stage runs whatever arrives first and updates by itself, after every {}: the result is that of this "
        "recipe "
        "under\nthis plan and depends on which messages come first; it is not that of exact training. The picture is "
        "what stages of\nequal speed would do. Up to {} micro-batches are under way at once.\n",
        plan.updates == 1 ? "micro-batch" : fmt::format("{} micro-batches", plan.updates), plan.most_active());
  } else if (plan.has_own_result()) {
    std::vector<int> staleness;
    for (int stage = 0; stage < layout.stages(); ++stage) staleness.push_back(plan.staleness(stage));
    fmt::print(
        "\nThe picture is of the first {} steps. Stages do not wait for each other's updates: the result is that of "
        "this "
        "recipe\nunder this plan, and not that of exact training. Updates that a step's weights miss, by stage: {}\n",
        2 * plan.pipeline, fmt::join(staleness, " "));
  }
}

nlohmann::ordered_json to_json(const PlanSpec& plan, const PlanView& view) {
  nlohmann::ordered_json j{
      {"plan", to_string(plan)},       {"data", plan.data},         {"pipeline", plan.pipeline},
      {"tensor", plan.tensor},         {"sequence", plan.sequence}, {"chunks", plan.chunks},
      {"schedule", plan.schedule},     {"zero", plan.zero},         {"prefetch", plan.prefetch},
      {"recompute", plan.recompute},   {"offload", plan.offload},   {"offloads", plan.offloads},
      {"neighbours", plan.neighbours}, {"evaluate", plan.evaluate}, {"bubble", view.schedule.bubble()}};
  for (const StageView& s : view.stages)
    j["stages"].push_back({{"stage", s.stage},
                           {"part", s.part},
                           {"ranks", s.ranks},
                           {"layers", s.layers},
                           {"weights", s.weights},
                           {"flops", s.flops},
                           {"work", s.work},
                           {"sent_bytes", s.sends}});
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    const RankBytes& b = view.ranks[r];
    j["ranks"].push_back({{"parameters", b.parameters},
                          {"contributions", b.contributions},
                          {"state", b.state},
                          {"activations", b.activations},
                          {"messages", b.messages},
                          {"model", b.model},
                          {"bytes", b.all()},
                          {"file_bytes", b.disk},
                          {"sent_bytes", view.sent[r]}});
  }
  for (const StageMessage& m : view.messages)
    j["messages"].push_back({{"from", m.from}, {"to", m.to}, {"pass", name_of(m.pass)}, {"bytes", m.bytes}});
  for (const auto& rank : view.schedule.ranks) {
    auto list = nlohmann::ordered_json::array();
    for (const TaskTime& t : rank)
      list.push_back({{"pass", name_of(t.task.pass)},
                      {"stage", t.task.stage},
                      {"micro_batch", t.task.micro_batch},
                      {"begin", t.begin},
                      {"end", t.end}});
    j["tasks"].push_back(list);
  }
  return j;
}

void show_plan(const PlanSettings& s) {
  const auto disk = make_real_disk();
  Problems problems;
  const PreparedRun prepared = prepare_run(*disk, s.recipe, s.overrides, problems);
  PlanSpec plan = read_run_plan(*disk, prepared.recipe, s.plan, problems);
  if (problems.empty()) plan = check_run_plan(prepared, plan, s.workers, 0, problems);
  if (problems.empty() && prepared.model->training(1).size() > 1)
    problems.add({}, "a model with several phases in a training step has nothing to show: it cannot be split");
  if (problems.empty() && !s.memory.empty())
    check_memory_limit(prepared, plan, s.workers, read_memory_size(s.memory, "--memory"), problems);
  problems.throw_if_any(s.recipe);

  const PlanLayout layout(plan, static_cast<int>(prepared.recipe.train.shards));
  const auto largest = static_cast<std::int64_t>(prepared.batch_sequence().largest_batch());
  const std::int64_t samples = (largest + layout.shards() - 1) / layout.shards();
  const PlanView view = view_run_plan(prepared, plan);
  if (!s.svg.empty()) {
    const std::string picture = schedule_svg(view.schedule, fmt::format("{}: {}", s.recipe, to_string(plan)));
    write_file_atomically(*disk, s.svg, picture);
  }
  if (s.json)
    fmt::print("{}\n", to_json(plan, view).dump());
  else
    print_text(plan, layout, view, samples);
}

void list_plans(bool json) {
  const auto disk = make_real_disk();
  auto all = nlohmann::ordered_json::array();
  for (const std::string& name : plan_names(*disk)) {
    Problems problems;
    const PlanFile f = read_plan_file(*disk, name, problems);
    problems.throw_if_any(f.path);
    all.push_back({{"name", f.name},
                   {"title", f.title},
                   {"paper", f.paper},
                   {"plan", plan_text(f.plan)},
                   {"own_result", f.plan.has_own_result()},
                   {"about", f.about},
                   {"program", f.program},
                   {"deviates", f.deviates},
                   {"example", f.example}});
    if (json) continue;
    fmt::print("{}  {}\n  {}\n  {}\n  echelon train {} --plan {}\n\n{}\n{}", f.name, f.title, f.paper,
               plan_text(f.plan), f.example, f.name, f.about, f.program);
    fmt::print("{}\n", f.deviates.empty() ? "" : "\ndeviates: " + f.deviates + "\n");
  }
  if (json) fmt::print("{}\n", all.dump());
}

}  // namespace

void add_plan(Verb program) {
  const Verb verb = program.add_subcommand("plan", "Rank plans for a recipe: which is best, will it fit, how long");
  verb.require_subcommand(0, 1);
  verb.footer(
      "Examples:\n"
      "  echelon plan recipes/demo.toml --workers 4                          all plans, the best first, and why\n"
      "  echelon plan recipes/demo.toml --workers 4 -o best.toml             ... written for --plan best.toml\n"
      "  echelon plan recipes/demo.toml --workers 8 --cluster recipes/clusters/two-racks.toml --memory 2GiB\n"
      "  echelon plan recipes/demo.toml --sweep workers=1..64 --cluster recipes/clusters/two-racks.toml --svg "
      "curve.svg\n"
      "  echelon plan grade                                                  predicted beside measured\n"
      "  echelon plan list\n"
      "  echelon plan show recipes/demo.toml --workers 4 --plan pipeline=2");
  add_plan_rank(verb);
  add_plan_grade(verb);
  add_plan_published(verb);
  auto s = std::make_shared<PlanSettings>();
  const Verb listing = verb.add_subcommand("list", "Published ways to split a model that --plan knows by name");
  listing.add_flag("--json", s->json, "Print JSON");
  listing.footer("Example:\n  echelon plan list");
  listing.action([s] { list_plans(s->json); });
  const Verb showing =
      verb.add_subcommand("show", "Who has which layers, bytes and messages, and the schedule as a picture");
  showing.add_option("recipe", s->recipe, "A recipe (TOML)").required();
  showing.add_option("--workers", s->workers, "Workers").show_default().range(1, 100000);
  showing.add_option(
      "--plan", s->plan,
      "data=2,pipeline=2,schedule=1f1b, a name of `echelon plan list`, or a file (default: the recipe's)");
  showing.add_option("--set", s->overrides, "Change one setting of the recipe first").one_each_time();
  showing.add_option("--memory", s->memory, "What a worker may allocate: 1.2GiB; refused if a rank needs more");
  showing.add_option("--svg", s->svg, "Also draw the schedule into this file");
  showing.add_flag("--json", s->json, "Print one JSON object");
  showing.footer(
      "Examples:\n"
      "  echelon plan show recipes/demo.toml --workers 4 --plan pipeline=2\n"
      "  echelon plan show recipes/demo.toml --workers 4 --plan pipeline=4,schedule=zero_bubble --svg schedule.svg");
  showing.action([s] { show_plan(*s); });
}

}  // namespace echelon::cli
