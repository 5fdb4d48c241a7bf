// `echelon runs explain RUN`: where a run's time went, in words, and what to try next.

#include "base/error.h"
#include "base/text.h"
#include "cli/runs/run_facts.h"
#include "cli/verbs.h"
#include "foresight/advice.h"
#include "track/run.h"
#include "world/os/cores.h"
#include "world/os/disk.h"

namespace echelon::cli {

namespace {

struct ExplainSettings {
  std::string root = "runs", run;
  bool json = false;
};

std::int64_t train_number(const Options& recipe, const char* key, std::int64_t otherwise) {
  const auto train = recipe.items.find("train");
  if (train == recipe.items.end()) return otherwise;
  const auto* table = std::get_if<Option::Table>(&train->second.value);
  if (!table) return otherwise;
  const auto it = (*table)->items.find(key);
  const std::int64_t* number = it == (*table)->items.end() ? nullptr : std::get_if<std::int64_t>(&it->second.value);
  return number ? *number : otherwise;
}

void explain(const ExplainSettings& s) {
  const auto disk = make_real_disk();
  const RunFacts facts = run_facts(open_run(*disk, s.root, s.run));
  const Json& summary = facts.info.summary;
  if (!summary.is_object()) bad_input("{} has not ended yet: there is nothing to explain", s.run);
  const int workers = summary.value("workers", 1);
  const auto advice = foresight::advice_after(summary, {.recipe = facts.info.folder.recipe(),
                                                        .workers = workers,
                                                        .cores = available_cores(),
                                                        .batch = train_number(facts.recipe, "batch", 64),
                                                        .shards = train_number(facts.recipe, "shards", 1)});
  if (s.json) {
    Json json{{"run", facts.info.folder.path}, {"advice", Json::array()}};
    for (const foresight::Advice& a : advice) json["advice"].push_back({{"what", a.what}, {"command", a.command}});
    for (const char* key : {"predicted", "measured"})
      if (summary.contains(key)) json[key] = summary.at(key);
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print("{}: {} steps, {:.0f} samples/s, {} worker{}\n", facts.info.folder.path, summary.value("steps", 0),
             summary.value("samples_per_s", 0.0), workers, workers == 1 ? "" : "s");
  if (summary.contains("predicted") && summary.contains("measured")) {
    const Json &p = summary.at("predicted"), &m = summary.at("measured");
    fmt::print("a step took {}; predicted {} ({:+.1f} %)\n", human_duration(m.value("seconds", 0.0)),
               human_duration(p.value("seconds", 0.0)), 100 * p.value("error", 0.0));
    if (p.contains("why_off")) fmt::print("{}\n", p.value("why_off", std::string()));
  }
  for (const foresight::Advice& a : advice)
    fmt::print("\n{}{}\n", a.what, a.command.empty() ? "" : "\n  try: " + a.command);
}

}  // namespace

void add_runs_explain(Verb runs) {
  const Verb verb = runs.add_subcommand("explain", "Where a run's time went, in words, and what to try next");
  auto s = std::make_shared<ExplainSettings>();
  verb.add_option("run", s->run, "A run's folder, or its name in runs/").required();
  verb.add_option("--root", s->root, "Where the runs are").show_default();
  verb.add_flag("--json", s->json, "Print JSON");
  verb.footer("Example:\n  echelon runs explain demo-1");
  verb.action([s] { explain(*s); });
}

}  // namespace echelon::cli
