#include "cli/training/run_reporter.h"

#include <iostream>

#include "base/error.h"
#include "base/text.h"
#include "cli/folded.h"
#include "cli/foresight/run_prediction.h"
#include "cli/report.h"
#include "cli/training/run_record.h"
#include "cli/training/summary_json.h"
#include "run/run_plan.h"
#include "run/training/interrupted.h"
#include "track/curve.h"
#include "track/run.h"
#include "world/os/cores.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

// The command that trains the same weights once more on one core, where that is the recipe's doing alone (exact
// training) and not what was just done; else empty. A run that went on is repeated by its folder's recipe.
std::string command_to_repeat(const TrainSettings& s, const RunFolder& folder, bool resumed, bool exact) {
  if (!exact) return "";
  if (s.world.cores == 1 && s.world.workers == 1 && s.world.world.empty() && s.plan.empty()) return "";
  TrainSettings again;
  again.recipe = resumed ? folder.recipe() : s.recipe;
  if (!resumed) again.system = s.system, again.overrides = s.overrides;
  again.world.cores = 1;
  return again.command() + "        the same weights, bit for bit";
}

double epochs_of(const PreparedRun& prepared) {
  const data::Cursor last = prepared.batch_sequence().at(static_cast<std::uint64_t>(prepared.total_steps - 1));
  return last.epoch +
         static_cast<double>(last.samples.first + last.samples.count) / static_cast<double>(prepared.train->size());
}

// Steps between lines of metrics: as the recipe says, or about a hundred lines an epoch.
std::int64_t log_every(const PreparedRun& prepared) {
  if (prepared.recipe.train.log_every > 0) return prepared.recipe.train.log_every;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(prepared.batch_sequence().steps_before(1)) / 100);
}

// "system easgd: rule elastic, exchange server, sync async\n"; nothing where nobody has named one.
std::string system_in_words(const Recipe& recipe, const TrainingJob& job, int workers) {
  const Composition* c = job.composition.get();
  if (recipe.system.empty() && !c) return "";
  const std::string name = "system" + (recipe.system.empty() ? "" : " " + recipe.system);
  if (workers == 1 && !(c && c->exchange->traits().works_alone))
    return name + ": one worker alone has no other to exchange with\n";
  if (!c) return name + ": the exact sum of all gradients in every step\n";
  return fmt::format("{}: rule {}, exchange {}, sync {}{}\n", name, c->rule_name, c->exchange_name, c->sync_name,
                     c->codec_name == "none" ? "" : ", codec " + c->codec_name);
}

// "plan data=2,pipeline=2,schedule=1f1b: 2 replicas on 2 workers each\n"; nothing where no model is split.
std::string plan_in_words(const PlanSpec& plan) {
  if (!plan.splits_model()) return "";
  const int each = plan.pipeline * plan.tensor;
  return fmt::format("plan {}: {} replica{}, each on {} worker{}{}\n", to_string(plan), plan.data,
                     plan.data == 1 ? "" : "s", each, each == 1 ? "" : "s",
                     plan.has_own_result() ? "; asynchronous, with a result of its own" : "");
}

// Ranks of a split model have one core each: what would use those that are left over on this machine.
std::string idle_cores_in_words(const TrainingJob& job, const WorldFlags& flags, const World& world) {
  const std::string& name = world.place().world;
  const bool here = name == "alone" || name == "processes" || name == "threads";
  if (!job.plan.splits_model() || job.composition || job.plan.is_message_driven() || !here || flags.cores > 0)
    return "";
  const int cores = available_cores(), each = std::min(cores / world.size(), job.shards / job.plan.data);
  if (each < 2) return "";
  return fmt::format("{} of {} cores work, one for each rank of a split model: --cores {} would give every worker {}\n",
                     world.size(), cores, each, each);
}

}  // namespace

RunReporter::RunReporter(const TrainSettings& s, const PreparedRun& prepared, Disk& disk, Clock& clock,
                         const TrainFolder& opened, LogListener& log, bool plain)
    : settings_(s),
      prepared_(prepared),
      disk_(disk),
      clock_(clock),
      folder_(opened.folder),
      resumed_(opened.resumes),
      log_(log),
      out_(s.quiet  ? nowhere_
           : s.json ? std::cerr
                    : std::cout),  // --json keeps stdout for the result
      progress_(out_,
                plain || s.quiet ? -1
                : s.json         ? 2
                                 : 1,
                clock, epochs_of(prepared)),
      predicted_(s.predicted) {}  // mpirun's terminal is none

void RunReporter::begin(Training& training, const TrainingJob& job, const World& world, Cores& cores) {
  before_ = training.next_step();
  metrics_.emplace(disk_, clock_, folder_, training.next_step(), log_every(prepared_),
                   [this](const std::string& text) { note(text); });
  training.add(*metrics_);
  training.save_after([this] { return metrics_->flush(); });
  training.add(histograms_.emplace(disk_, folder_, training.engine()));
  if (settings_.generation > 1) return;  // it has been said, and the registry knows of it
  const bool exact = !job.composition;   // then the shards of a batch are spread over all workers
  const std::string text = system_in_words(prepared_.recipe, job, world.size()) + plan_in_words(job.plan) +
                           idle_cores_in_words(job, settings_.world, world) +
                           opening(prepared_, cores.count() * (exact ? world.size() : 1),
                                   in_words(settings_.world, world), training, folder_);
  out_ << for_terminal(settings_.json ? 2 : 1, text) << std::flush;
  log_.write("start", text);
  put_into_registry();
}

void RunReporter::hand_over() {
  progress_.finish();
  metrics_->finish();
}

void RunReporter::end(Training& training, const RunSummary& summary, const World& world, Cores& cores, bool exact,
                      const Json& plan, const SampledSteps& sampled, const std::string& signal) {
  progress_.finish();
  metrics_->finish();
  auto json = to_json(summary, folder_, prepared_, world);
  if (!signal.empty()) json["signal"] = signal;
  if (settings_.kept) json["generations"] = settings_.generation;
  if (resumed_ && summary.steps == before_) keep_figures(json);
  if (!plan.is_null()) add_plan(json, plan, summary);
  if (predicted_)
    if (const std::string off = store_outcome(*predicted_, summary, sampled, folder_, prepared_, json); !off.empty())
      note("prediction: " + off);
  const std::string unwritten = try_to_write_summary(Json(json));
  log_.write("end", json.dump());
  put_into_registry();
  if (settings_.result) settings_.result(json.dump());
  if (settings_.quiet) return expect_saved(summary, unwritten);
  if (was_interrupted(summary.stopped_by))
    fmt::print(stderr, "stopped by a {}: saved at step {}. Go on with: {}\n", summary.stopped_by, summary.steps,
               resuming_command(folder_));
  const std::optional<Predictions> predictions = predict_test(prepared_, training, summary, cores);
  if (predictions) try_to_write(folder_.evaluation(), to_json(*predictions, prepared_));
  if (settings_.json)
    fmt::print("{}\n", json.dump());
  else
    print_result(out_, prepared_, predictions, summary, folder_, curve(),
                 command_to_repeat(settings_, folder_, resumed_, exact), resumed_ ? before_ : 0);
  expect_saved(summary, unwritten);
}

void RunReporter::expect_saved(const RunSummary& summary, const std::string& unwritten) const {
  if (!summary.not_saved.empty())
    fail("the weights at the end were not saved ({}). Make room, then: {}", summary.not_saved,
         resuming_command(folder_));
  if (!unwritten.empty()) fail("the weights are saved, but the summary is not ({})", unwritten);
}

// Nothing was left to train: how fast and how long that was is what the run's summary says already.
void RunReporter::keep_figures(nlohmann::ordered_json& json) const {
  const Json was = read_run(disk_, folder_).summary;
  for (const char* key : {"samples_per_s", "seconds", "input_bound", "peak_share", "stopped_by"}) {
    if (was.is_object() && was.contains(key))
      json[key] = was.at(key);
    else if (std::string_view(key) != "stopped_by")
      json.erase(key);
  }
}

std::string RunReporter::try_to_write_summary(const Json& summary) try {
  write_summary(disk_, folder_, summary);
  return "";
} catch (const DiskError& problem) {  // whether the weights are saved is more important
  return problem.what();
}

void RunReporter::try_to_write(const std::string& path, const Json& json) {
  try {
    write_file_atomically(disk_, path, json.dump() + "\n");
  } catch (const DiskError& problem) {
    log_.on_note(problem.what());
  }
}

// The loss as a picture.
std::string RunReporter::curve() {
  const auto points = read_metrics(disk_, folder_.metrics()).points;
  std::vector<Series> all;
  for (const char* metric : {"train_loss", "val_loss", "test_loss"})
    if (Series s = series_of(points, metric); s.x.size() > 1)
      all.push_back(std::string(metric) == "train_loss" ? smoothed(s, 8) : std::move(s));
  if (all.empty()) return "";
  return plot_text(all, {.title = "loss", .x_label = "step", .y_label = "", .log_y = true},
                   std::min(100, terminal_columns(1)), 14, is_terminal(1));
}

// Whoever asks the registry brings it up to date first, so nothing is lost if this does not succeed.
void RunReporter::put_into_registry() {
  if (const std::string problem = tell_registry(folder_); !problem.empty()) log_.on_note("registry: " + problem);
}

}  // namespace echelon::cli
