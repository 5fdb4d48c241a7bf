// `echelon eval`: how good a trained network is, on its test data or on other data of the same kind.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/loaded_run.h"
#include "cli/verbs.h"
#include "parallel/step/evaluator.h"

namespace echelon::cli {

namespace {

struct EvalSettings {
  std::string run, checkpoint = "best", split = "test";
  int cores = available_cores();
  bool json = false;
};

void eval(const EvalSettings& s) {
  const auto disk = make_real_disk();
  LoadedRun run = load_run(*disk, s.run, s.checkpoint);
  const auto data = data::open_dataset(*disk, run.prepared.recipe.data, s.split);
  LocalTeam alone(s.cores);
  Evaluator evaluator(*run.prepared.model, run.table, run.parameters.as<float>(), data,
                      static_cast<std::int64_t>(std::min<std::uint64_t>(data->size(), 256)), alone.team);
  const Evaluation e = evaluator.run();
  if (s.json) {
    nlohmann::ordered_json j{{"run_dir", run.folder.path},
                             {"step", run.manifest.position.step},
                             {"split", s.split},
                             {"samples", e.samples},
                             {"loss", e.loss}};
    if (e.accuracy >= 0) j["accuracy"] = e.accuracy;
    j["weights_sha256"] = run.manifest.weights_sha256;
    fmt::print("{}\n", j.dump());
    return;
  }
  fmt::print("{} at step {}, {} {} samples\n", run.folder.path, run.manifest.position.step, e.samples, s.split);
  if (e.accuracy >= 0) fmt::print("accuracy  {:.2f} %\n", 100 * e.accuracy);
  fmt::print("loss      {:.4f}\nweights   sha256 {}\n", e.loss, run.manifest.weights_sha256);
}

}  // namespace

void add_eval(Verb program) {
  const Verb verb = program.add_subcommand("eval", "Loss and accuracy of a trained network");
  auto s = std::make_shared<EvalSettings>();
  verb.add_option("run", s->run, "A run's folder, or its name in runs/").required();
  verb.add_option("--checkpoint", s->checkpoint, "best, last or a step").show_default();
  verb.add_option("--split", s->split, "test or train").show_default().one_of({"test", "train"});
  verb.add_option("--cores", s->cores, "Cores to use").show_default().range(1, 1024);
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer("Examples:\n  echelon eval runs/demo-1\n  echelon eval demo-1 --checkpoint last --split train");
  verb.action([s] { eval(*s); });
}

}  // namespace echelon::cli
