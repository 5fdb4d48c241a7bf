#include "cli/training/progress_listener.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cli/answers/metric_text.h"
#include "cli/folded.h"
#include "world/os/host.h"

namespace echelon::cli {

ProgressListener::ProgressListener(std::ostream& out, int descriptor, Clock& clock, double total_epochs)
    : progress_(out, clock,
                {.live = is_terminal(descriptor), .columns = [descriptor] { return terminal_columns(descriptor); }}),
      descriptor_(descriptor),
      total_epochs_(total_epochs) {}

void ProgressListener::on_step(const StepEvent& e) {
  const double share = static_cast<double>(e.result.correct) / static_cast<double>(e.result.terms);
  const double weight = std::max(0.05, 1.0 / static_cast<double>(++seen_));
  loss_ += weight * (e.result.loss - loss_);
  accuracy_ += weight * (share - accuracy_);
  ProgressState state{.step = e.step, .steps = e.total_steps, .loss = loss_};
  if (total_epochs_ > 0) {
    state.epochs = static_cast<std::int64_t>(std::ceil(total_epochs_ - 1e-9));
    state.epoch = std::min<std::int64_t>(state.epochs, static_cast<std::int64_t>(std::ceil(e.epoch - 1e-9)));
  }
  if (accuracy_ > 0) state.accuracy = accuracy_;
  state.samples_per_s = e.samples_per_s;
  state.peak_share = e.peak_share;
  progress_.update(state);
}

std::string in_words(const EvaluationEvent& e) {
  if (e.tested_step >= 0)
    return fmt::format("the test, with the weights of step {}: {}", e.tested_step, in_words(e.result));
  return fmt::format("epoch {:.2f}  step {}  {} {}{}", e.epoch, e.step, e.part, in_words(e.result),
                     e.best ? "  best so far" : "");
}

void ProgressListener::on_evaluation(const EvaluationEvent& e) {
  progress_.say(for_terminal(descriptor_, in_words(e)));
}

void ProgressListener::on_save(const SaveResult& r) {
  if (!r.saved && r.warning.empty()) progress_.say(fmt::format("step {}: no checkpoint", r.step));
}

}  // namespace echelon::cli
