#include "cli/runs/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "run/training/interrupted.h"

namespace echelon::cli {

namespace {

std::optional<double> number_in(const Json& summary, const char* key) {
  if (!summary.is_object() || !summary.contains(key) || !summary[key].is_number()) return {};
  return summary[key].get<double>();
}

// Of an evaluation while it trained: on the validation part where there is one.
const double* evaluated(const MetricPoint& p, const std::string& metric) {
  const double* value = p.find("val_" + metric);
  return value ? value : p.find("test_" + metric);
}

// One metric against another. Where nothing was sent there is nothing to see against bytes.
Series curve_of(const ComparedRun& run, const char* metric, const char* against) {
  Series s{run.system, {}, {}};
  for (const MetricPoint& p : run.points) {
    const double *x = p.find(against),
                 *y = std::string_view(metric) == "accuracy" ? evaluated(p, metric) : p.find(metric);
    if (x && y && (*x > 0 || against != std::string_view("bytes"))) s.x.push_back(*x), s.y.push_back(*y);
  }
  return s;
}

int workers_of(const ComparedRun& run) { return static_cast<int>(number_in(run.summary, "workers").value_or(1)); }

int working_workers_of(const ComparedRun& run) {
  return static_cast<int>(number_in(run.summary, "working_workers").value_or(workers_of(run)));
}

bool in_one_memory(const ComparedRun& run) { return number_in(run.summary, "bytes") == 0.0 && workers_of(run) > 1; }

std::string cell(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

}  // namespace

ComparedRun read_compared(Disk& disk, const std::string& system, const RunFolder& folder) {
  ComparedRun run{.system = system, .folder = folder, .failed = "", .summary = nullptr, .points = {}};
  run.summary = read_run(disk, folder).summary;
  run.points = read_metrics(disk, folder.metrics()).points;
  if (!run.summary.is_object()) run.failed = "the run has not ended";
  return run;
}

ComparedResult result_of(const ComparedRun& run, double target) {
  ComparedResult r;
  r.accuracy = number_in(run.summary, "test_accuracy");
  r.test_loss = number_in(run.summary, "test_loss");
  r.train_loss = number_in(run.summary, "train_loss");
  r.seconds = number_in(run.summary, "seconds");
  r.samples_per_s = number_in(run.summary, "samples_per_s");
  r.ended_by = run.summary.is_object() ? run.summary.value("stopped_by", std::string("?")) : "failed";
  if (target > 0)
    for (const MetricPoint& p : run.points) {
      const double *accuracy = evaluated(p, "accuracy"), *seconds = p.find("seconds");
      if (!accuracy || !seconds || *accuracy < target) continue;
      r.seconds_to_target = *seconds;
      break;
    }
  if (const auto bytes = number_in(run.summary, "bytes"), steps = number_in(run.summary, "steps");
      bytes && steps && *steps > 0)
    r.bytes_per_step = *bytes / *steps;
  return r;
}

std::string comparison_table(const std::vector<ComparedRun>& runs, double target) {
  const std::string to_target = target > 0 ? fmt::format("to {:.2f} %", 100 * target) : "";
  std::size_t width = 6;
  for (const ComparedRun& run : runs) width = std::max(width, run.system.size());
  const auto row = [&](const std::string& system, const std::string& accuracy, const std::string& loss,
                       const std::string& seconds, const std::string& reached, const std::string& rate,
                       const std::string& bytes, const std::string& end) {
    return fmt::format("{:<{}}  {:>9}  {:>9}  {:>10}  {}{:>10}  {:>10}  {}\n", system, width, accuracy, loss, seconds,
                       target > 0 ? fmt::format("{:>11}  ", reached) : "", rate, bytes, end);
  };
  std::string text = row("system", "accuracy", "test loss", "time", to_target, "samples/s", "bytes/step", "ended by");
  for (const ComparedRun& run : runs) {
    const ComparedResult r = result_of(run, target);
    text += row(run.system, r.accuracy ? fmt::format("{:.2f} %", 100 * *r.accuracy) : "-", cell(r.test_loss, "{:.4f}"),
                r.seconds ? human_duration(*r.seconds) : "-",
                r.seconds_to_target ? human_duration(*r.seconds_to_target) : "never", cell(r.samples_per_s, "{:.0f}"),
                r.bytes_per_step ? human_bytes(*r.bytes_per_step) : "-", r.ended_by);
  }
  if (std::ranges::any_of(runs, in_one_memory))
    text += "\nbytes/step 0: these workers add up in the memory they share and send nothing; with --link they send\n";
  for (const ComparedRun& run : runs)
    if (const int all = workers_of(run), working = working_workers_of(run); working < all)
      text += fmt::format(
          "\n{0}: only {1} of {2} workers had work, as a batch has {1} shard{3}: raise train.shards (--set "
          "train.shards={2}), or leave it out and raise train.batch\n",
          run.system, working, all, working == 1 ? "" : "s");
  for (const ComparedRun& run : runs)
    if (!run.failed.empty())
      text += fmt::format("\n{} failed: {}\n", run.system, run.failed);
    else if (was_interrupted(result_of(run, target).ended_by))
      text += fmt::format("\n{} was stopped: what it had reached by then is above\n", run.system);
  return text;
}

Json comparison_json(const std::vector<ComparedRun>& runs, double target) {
  Json all = Json::array();
  for (const ComparedRun& run : runs) {
    const ComparedResult r = result_of(run, target);
    Json j{{"system", run.system}, {"run_dir", run.folder.path}, {"ended_by", r.ended_by}};
    const auto put = [&](const char* key, const std::optional<double>& value) {
      if (value) j[key] = *value;
    };
    put("test_accuracy", r.accuracy);
    put("test_loss", r.test_loss);
    put("train_loss", r.train_loss);
    put("seconds", r.seconds);
    put("samples_per_s", r.samples_per_s);
    put("bytes_per_step", r.bytes_per_step);
    put("workers", number_in(run.summary, "workers"));
    put("working_workers", number_in(run.summary, "working_workers"));
    if (target > 0) j["seconds_to_target"] = r.seconds_to_target ? Json(*r.seconds_to_target) : Json(nullptr);
    if (!run.failed.empty()) j["failed"] = run.failed;
    all.push_back(std::move(j));
  }
  return all;
}

std::vector<ComparedPlot> comparison_plots(const std::vector<ComparedRun>& runs) {
  struct What {
    const char *name, *metric;
    bool log;
  };
  struct Against {
    const char *name, *metric, *label;
  };
  std::vector<ComparedPlot> plots;
  for (const What& what : {What{"loss", "train_loss", true}, What{"accuracy", "accuracy", false}})
    for (const Against& against : {Against{"time", "seconds", "seconds"}, Against{"samples", "samples", "samples"},
                                   Against{"bytes", "bytes", "bytes sent by all workers"}}) {
      ComparedPlot plot{
          .name = fmt::format("{}-{}", what.name, against.name),
          .series = {},
          .options = {.title = fmt::format("{} against {}", what.log ? "training loss" : "accuracy", against.name),
                      .x_label = against.label,
                      .y_label = "",
                      .log_y = what.log}};
      bool any = false;
      for (const ComparedRun& run : runs) {  // those without points too: a colour means the same run in every plot
        const Series s = curve_of(run, what.metric, against.metric);
        any = any || !s.x.empty();
        plot.series.push_back(what.log ? smoothed(s, 8) : s);
      }
      if (any) plots.push_back(std::move(plot));
    }
  return plots;
}

}  // namespace echelon::cli
