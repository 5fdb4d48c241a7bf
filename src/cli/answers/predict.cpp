// `echelon predict`: what a trained network says about pictures, rows, arrays and folders.

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/answers/answers.h"
#include "cli/answers/loaded_run.h"
#include "cli/answers/predict_inputs.h"
#include "cli/models/output_file.h"
#include "cli/verbs.h"
#include "parallel/step/predictor.h"
#include "track/progress.h"
#include "world/os/clock.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

struct PredictSettings {
  std::string run, checkpoint = "best", output, format;
  std::vector<std::string> inputs;
  int top = 3;
  int cores = available_cores();
  bool json = false, ema = false;
};

// Where answers go: a file that appears whole or not at all, or standard output, where nothing appears before the end
// (or before there is a lot of it), so that a broken input leaves nothing half said.
class AnswerSink {
 public:
  AnswerSink(Disk& disk, const std::string& path) : disk_(disk), path_(path) {
    if (path.empty()) return;
    beside_ = fmt::format("{}.{}.new", path, process_id());
    try {
      file_ = disk.create(beside_);
    } catch (const DiskError& problem) {
      bad_input("{} cannot be written ({}); name another file with -o", path, problem.what());
    }
  }
  ~AnswerSink() {
    if (!file_) return;
    file_.reset();
    try {
      disk_.remove_all(beside_);
    } catch (const DiskError&) {  // what is left of it is only a file beside
    }
  }
  void write(std::string_view text) {
    held_ += text;
    if (held_.size() > (file_ ? enough_to_write : most_held)) write_held();
  }
  void finish() {
    write_held();
    if (!file_) return;
    file_->sync();
    file_.reset();
    disk_.rename(beside_, path_);
  }

 private:
  static constexpr std::size_t enough_to_write = 1 << 20, most_held = 16 << 20;

  void write_held() {
    if (file_)
      file_->append(std::as_bytes(std::span(held_)));
    else
      std::fwrite(held_.data(), 1, held_.size(), stdout);
    held_.clear();
  }

  Disk& disk_;
  std::string path_, beside_, held_;
  std::unique_ptr<File> file_;
};

AnswerMeaning meaning_of(const LoadedRun& run, std::int64_t width, int top) {
  using Kind = AnswerMeaning::Kind;
  const models::Task task = run.prepared.model->task();
  AnswerMeaning meaning{.kind = task == models::Task::classify      ? Kind::classes
                                : task == models::Task::multi_label ? Kind::labels
                                                                    : Kind::numbers,
                        .names = {},
                        .top = top};
  if (meaning.kind == Kind::classes) {
    meaning.names = class_names_of(run.prepared.train->info());
    return meaning;
  }
  const std::vector<data::TargetColumn>& targets = run.prepared.train->info().targets;
  const std::vector<float>& levels = run.prepared.model->inputs().loss.quantiles;
  const std::size_t each = std::max<std::size_t>(1, levels.size());  // numbers for a target
  if (static_cast<std::int64_t>(targets.size() * each) == width) {
    for (const data::TargetColumn& target : targets) {
      if (levels.empty()) meaning.names.push_back(target.name);
      for (const float level : levels) meaning.names.push_back(fmt::format("{}_{}", target.name, level));
    }
    meaning.original = [targets, each](std::size_t i, double said) {
      return targets[i / each].mean + targets[i / each].deviation * said;
    };
    return meaning;
  }
  for (std::int64_t i = 0; i < width; ++i) meaning.names.push_back(width == 1 ? "output" : fmt::format("output_{}", i));
  return meaning;
}

void expect_answers(const LoadedRun& run) {
  const models::Task task = run.prepared.model->task();
  if (task == models::Task::language)
    bad_input("{} is a language model: `echelon sample {}` lets it speak", run.folder.path,
              shell_quoted(run.folder.path));
  if (task == models::Task::generate)
    bad_input("{} makes pictures out of nothing: `echelon sample {} --png pictures.png`", run.folder.path,
              shell_quoted(run.folder.path));
}

AnswerFormat format_of(const PredictSettings& s, bool small) {
  if (!s.format.empty()) return answer_format_named(s.format);
  if (!s.output.empty()) return answer_format_of(s.output);
  if (s.json) return AnswerFormat::jsonl;
  return small ? AnswerFormat::lines : AnswerFormat::csv;
}

// One broken picture among thousands: all that are broken are named, and nothing has been written.
[[noreturn]] void explain(const PredictInputs& inputs, const Error& problem) {
  const std::vector<std::string> all = inputs.all_problems ? inputs.all_problems() : std::vector<std::string>{};
  if (all.empty()) throw BadInput(problem.what());
  constexpr std::size_t shown = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, all.size()); ++i) text += (i ? "\n" : "") + all[i];
  if (all.size() > shown) text += fmt::format("\nand {} more", all.size() - shown);
  throw BadInput(text);
}

// The inputs whose answers are no numbers, because theirs are too large for the network. Each shard writes its own.
class AnswersThatAreNone {
 public:
  explicit AnswersThatAreNone(std::size_t shards) : by_shard_(shards) {}

  void look(int shard, std::uint64_t sample, std::span<const float> numbers) {
    Found& found = by_shard_[static_cast<std::size_t>(shard)];
    if (std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); })) return;
    found.first = std::min(found.first, sample);
    ++found.count;
  }

  void refuse_if_any(const PredictInputs& inputs) const {
    Found all;
    for (const Found& f : by_shard_) all.first = std::min(all.first, f.first), all.count += f.count;
    if (all.count > 0)
      bad_input(
          "{} of {} answers are no numbers; the first is that for '{}', which has values too large for this network",
          all.count, inputs.samples->size(), inputs.name(all.first));
  }

 private:
  struct Found {
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max(), count = 0;
  };
  std::vector<Found> by_shard_;
};

void predict(const PredictSettings& s) {
  if (std::ranges::find(s.inputs, "") != s.inputs.end())
    bad_input("an input is empty (''): name a file, a folder, a row such as 5.1,3.5,1.4,0.2, or -");
  const auto disk = make_real_disk();
  const auto same_file = [&](const std::string& a, const std::string& b) {
    const auto one = disk->exists(a) ? disk->stamp(a) : std::nullopt,
               two = disk->exists(b) ? disk->stamp(b) : std::nullopt;
    return a == b || (one && two && one->device == two->device && one->inode == two->inode);
  };
  for (const std::string& input : s.inputs)
    if (!s.output.empty() && same_file(input, s.output))
      bad_input("-o {}: the answers would be written over what is asked; give them another name", s.output);
  expect_folder_of(*disk, s.output);
  const auto clock = make_real_clock();
  LoadedRun run = load_run(*disk, s.run, s.checkpoint, s.ema, RunData::described);
  expect_answers(run);
  if (!s.json) fmt::print(stderr, "{}: {}\n", run.folder.path, run.which);
  const PredictInputs inputs = open_predict_inputs(*disk, run, s.inputs);
  for (const std::string& note : inputs.notes) fmt::print(stderr, "note: {}\n", note);
  const models::Task task = run.prepared.model->task();
  const bool shares = task == models::Task::classify || task == models::Task::multi_label;
  Cores cores(s.cores);
  Predictor predictor(*run.prepared.model, run.table, run.parameters.as<float>(), inputs.samples,
                      shares ? "probabilities" : "output", cores);
  const AnswerFormat format = format_of(s, inputs.small);
  const AnswerText text(format, meaning_of(run, predictor.width(), s.top), inputs.name);
  const std::uint64_t samples = inputs.samples->size();
  AnswerSink sink(*disk, s.output);
  Progress progress(std::cerr, *clock, {.live = true, .columns = [] { return terminal_columns(2); }});
  const bool watched = is_terminal(2) && !inputs.small && (!s.output.empty() || !is_terminal(1));
  std::vector<std::string> rows;  // by shard, of the batch under way
  std::string kept;               // of --json without a file
  const double start = clock->seconds();
  const bool array = s.json && s.output.empty();
  const auto put = [&](const std::string& piece) { array ? void(kept += piece) : sink.write(piece); };
  put(text.header(samples));
  const auto width = static_cast<std::size_t>(predictor.width());
  rows.resize(static_cast<std::size_t>(predictor.shards()));
  AnswersThatAreNone none(rows.size());
  try {
    predictor.run(
        [&](int shard, const Predictor::Answers& answers) {
          std::string& out = rows[static_cast<std::size_t>(shard)];
          for (std::size_t i = 0; i < answers.count; ++i) {
            const std::span<const float> numbers = answers.numbers.subspan(i * width, width);
            none.look(shard, answers.first + i, numbers);
            text.add_row(out, answers.first + i, numbers);
          }
        },
        [&](std::uint64_t done) {
          for (std::string& row : rows) put(row), row.clear();
          if (watched)
            progress.update({.step = static_cast<std::int64_t>(done),
                             .steps = static_cast<std::int64_t>(samples),
                             .samples_per_s = static_cast<double>(done) / std::max(1e-9, clock->seconds() - start)});
        });
  } catch (const BadInput& problem) {
    explain(inputs, problem);
  }
  none.refuse_if_any(inputs);
  sink.finish();
  if (watched) progress.finish();
  const double seconds = clock->seconds() - start;
  if (array) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const std::string_view line : split(kept, '\n'))
      if (!line.empty()) all.push_back(nlohmann::ordered_json::parse(line));
    fmt::print("{}\n", all.size() == 1 ? all[0].dump() : all.dump());
  } else if (!s.output.empty()) {
    const double rate = static_cast<double>(samples) / std::max(1e-9, seconds);
    if (s.json)
      fmt::print("{}\n", nlohmann::ordered_json{{"run_dir", run.folder.path},
                                                {"step", run.manifest.position.step},
                                                {"samples", samples},
                                                {"file", s.output},
                                                {"seconds", seconds},
                                                {"samples_per_s", rate}}
                             .dump());
    else
      fmt::print("{} answers of {} (step {}) in {} after {}, {} samples/s\n", samples, run.folder.path,
                 run.manifest.position.step, s.output, human_duration(seconds), human_count(rate));
  }
}

}  // namespace

void add_predict(Verb program) {
  const Verb verb = program.add_subcommand("predict", "What a network says about pictures, tables, arrays and folders");
  auto s = std::make_shared<PredictSettings>();
  verb.add_option("run", s->run, "A run's folder, its name in runs/, or a registered MODEL@VERSION").required();
  verb.add_option("inputs", s->inputs,
                  "Pictures (PNG, JPEG), folders of them, tables (CSV, JSON lines), arrays (NPY, NPZ, IDX), a data set "
                  "such as digits, rows such as 5.1,3.5,1.4,0.2, or - for a table from standard input")
      .required();
  verb.add_option("-o,--output", s->output, "Write the answers to this file: .csv, .jsonl or .npy");
  verb.add_option("--format", s->format, "csv, jsonl or npy, whatever the file is called")
      .one_of({"csv", "jsonl", "npy"});
  verb.add_option("--top", s->top, "How many classes lines and JSON name").show_default().range(1, 100);
  verb.add_option("--checkpoint", s->checkpoint,
                  "best (by train.monitor, and of equals the lowest loss), last or a step")
      .show_default();
  verb.add_option("--cores", s->cores, "Cores to use").show_default().range(1, 1024);
  verb.add_flag("--ema", s->ema, "Use the average of the weights that optim.ema kept");
  verb.add_flag("--json", s->json, "Print JSON: the answers, or with -o one object about them");
  verb.footer(
      "Examples:\n"
      "  echelon predict runs/demo-1 seven.png\n"
      "  echelon predict runs/flowers-1 5.1,3.5,1.4,0.2 --json\n"
      "  echelon predict runs/demo-1 pictures/ -o answers.csv\n"
      "  echelon predict runs/houses-1 new.csv -o prices.jsonl\n"
      "  cat new.csv | echelon predict runs/houses-1 - > prices.csv");
  verb.action([s] { predict(*s); });
}

}  // namespace echelon::cli
