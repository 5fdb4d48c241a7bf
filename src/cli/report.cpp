#include "cli/report.h"

#include <algorithm>
#include <ostream>

#include "base/text.h"
#include "cli/answers/loaded_run.h"
#include "cli/answers/metric_text.h"
#include "cli/folded.h"
#include "run/training/interrupted.h"
#include "track/draw.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

constexpr std::size_t shown_mistakes = 5;

// ", 600 to validate and 1000 to test with"
std::string parts_in_words(const PreparedRun& p) {
  std::string text;
  if (p.validation) text += fmt::format(", {} to validate with", p.validation->size());
  if (p.test) text += fmt::format(", {} to test with{}", p.test->size(), p.validation ? ", once at the end" : "");
  if (p.test && !p.validation) text += " (no validation part: the test part also decides which step is the best)";
  return text;
}

// Where each rank's time went; the longest wait is for somebody.
std::string rank_table(const RunSummary& r) {
  std::string text = "rank    compute   exchange      input    waiting, most of it for\n";
  for (std::size_t i = 0; i < r.ranks.size(); ++i) {
    const auto& waits = r.ranks[i].times.waiting_for;
    double waited = 0;
    for (double w : waits) waited += w;
    const auto most = std::ranges::max_element(waits) - waits.begin();
    text += fmt::format("{:<5} {:>8.2f} s {:>8.2f} s {:>8.2f} s {:>8.2f} s{}\n", i, r.ranks[i].times.compute,
                        r.ranks[i].times.exchange, r.ranks[i].input, waited,
                        waited > 0 ? fmt::format("  rank {}", most) : "");
  }
  return text;
}

}  // namespace

std::string resuming_command(const RunFolder& folder) {
  return fmt::format("echelon train {} --run {} --resume", shell_quoted(folder.recipe()), shell_quoted(folder.path));
}

std::string rule_of_best(const std::string& monitor) {
  if (monitor == "val_loss" || monitor == "test_loss") return "lowest " + monitor;
  return fmt::format("best {}, and of equals the lowest loss", monitor);
}

std::string opening(const PreparedRun& p, int cores, const std::string& workers, Training& training,
                    const RunFolder& folder) {
  const TrainSpec& t = p.recipe.train;
  const ParameterTable& table = training.engine().table();
  std::string text = fmt::format("{}: {} parameters, {} training samples{}\n", p.model->name(),
                                 human_count(static_cast<double>(table.weights())), p.train->size(), parts_in_words(p));
  text += describe_batch(t.batch, t.shards, cores) + "\n";
  text += workers + "\n";
  for (const std::string& note : p.recipe.notes) text += note + "\n";
  if (training.next_step() > 0)
    text += fmt::format("resuming after step {} of {}\n", training.next_step(), p.total_steps);
  return text + "run folder: " + folder.path + "\n";
}

void print_result(std::ostream& out, const PreparedRun& p, const std::optional<Predictions>& predictions,
                  const RunSummary& r, const RunFolder& folder, const std::string& curve, const std::string& again,
                  std::int64_t before) {
  const int columns = terminal_columns(1);
  const bool colour = is_terminal(1);
  const bool stopped = was_interrupted(r.stopped_by);  // the last evaluation was of earlier weights
  if (predictions && p.test->info().classes <= 20) {
    const auto names = class_names_of(p.test->info());
    out << "\n" << draw_confusion(predictions->confusion, names, columns, colour) << "\n";
    std::vector<Picture> pictures;
    for (const Mistake& m : predictions->mistakes) {
      if (m.pixels.empty() || pictures.size() == shown_mistakes) break;
      const Shape& s = p.test->fields()[0].shape;
      pictures.push_back({fmt::format("{} read as {} ({:.0f} %)", names[static_cast<std::size_t>(m.is)],
                                      names[static_cast<std::size_t>(m.said)], 100 * m.confidence),
                          draw_image(m.pixels, static_cast<int>(s[2]), static_cast<int>(s[1]), colour)});
    }
    if (!pictures.empty()) out << "its most confident mistakes\n" << side_by_side(pictures, columns) << "\n";
  }
  if (!curve.empty()) out << curve << "\n";
  constexpr int second_column = 15;
  const auto say = [&](const std::string& line) { out << for_terminal(1, line, second_column); };
  const char* when = stopped ? ", when last measured" : "";
  if (r.validation)
    say(fmt::format("validation     {}   (step {}, {} samples{})\n", in_words(*r.validation), r.steps,
                    r.validation->samples, when));
  if (r.test)
    say(fmt::format("test           {}   (step {}, {} samples{})\n", in_words(*r.test), r.tested_step, r.test->samples,
                    when));
  if (!r.monitor.empty())
    say(fmt::format("best           {} at step {} ({}): what eval and predict use\n", metric_text(r.monitor, r.best),
                    r.best_step, rule_of_best(r.monitor)));
  if (r.steps == before)
    say(fmt::format("training       nothing to do: its {} steps ({:.2f} epochs) were done before\n", r.steps,
                    r.epochs));
  else
    say(fmt::format(
        "training       {} steps, {:.2f} epochs{} in {}; {} samples/s, {:.0f} % of the FMA peak, input-bound {:.1f} "
        "%\n",
        r.steps, r.epochs, before > 0 ? fmt::format(", {} of the steps here", r.steps - before) : "",
        human_duration(r.seconds), human_count(r.samples_per_s), 100 * r.peak_share, 100 * r.waited_for_input));
  if (r.ranks.size() > 1) out << rank_table(r);
  say(fmt::format("stopped by     {}\nweights        sha256 {}\nrun folder     {}\n", r.stopped_by, r.weights_sha256,
                  folder.path));
  out << "\nTry next:\n";
  if (stopped) out << "  " << resuming_command(folder) << "\n";
  const std::string run = shell_quoted(folder.path);
  out << fmt::format("  echelon runs show {}\n", run);
  out << "  echelon board\n";
  const models::Task task = p.model->task();
  const bool answers =
      task == models::Task::classify || task == models::Task::regress || task == models::Task::multi_label;
  if (!stopped && answers && p.test) out << fmt::format("  echelon eval {} --errors\n", run);
  if (!stopped && answers)
    out << fmt::format("  echelon predict {} {} -o answers.csv\n", run,
                       p.plain.table                         ? "NEW.csv"
                       : p.plain.fields[0].shape.rank() == 3 ? "PICTURES/"
                                                             : "FILE");
  if (!stopped && !again.empty()) out << "  " << again << "\n";
  if (task == models::Task::language) out << fmt::format("  echelon sample {}\n", run);
  if (task == models::Task::reconstruct || task == models::Task::generate)
    out << fmt::format("  echelon sample {} --png pictures.png\n", run);
}

}  // namespace echelon::cli
