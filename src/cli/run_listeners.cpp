#include "cli/run_listeners.h"

#include "track/event_file.h"

namespace echelon::cli {

namespace {
constexpr std::size_t jobs_ahead = 64;
}

MetricsListener::MetricsListener(Disk& disk, Clock& clock, const RunFolder& folder, std::int64_t resumed_step,
                                 std::int64_t every, TellNote tell)
    : clock_(clock), every_(every), tell_(std::move(tell)) {
  const auto kept = cut_metrics(disk, folder.metrics(), resumed_step);
  std::vector<MetricsWriter::Output> outputs;
  outputs.push_back(jsonl_output(disk, folder.metrics()));
  outputs.push_back(event_output(disk, folder.tensorboard(), clock.unix_seconds(), kept));
  writer_ = std::make_unique<MetricsWriter>(make_background("metrics", jobs_ahead), std::move(outputs));
}

void MetricsListener::on_step(const StepEvent& e) {
  loss_sum_ += e.result.loss * static_cast<double>(e.result.terms);
  correct_sum_ += e.result.correct;
  terms_ += static_cast<double>(e.result.terms);
  if (e.step % every_ != 0 && e.step != e.total_steps) return;
  MetricPoint point{.step = e.step, .epoch = e.epoch, .time = clock_.unix_seconds(), .values = {}};
  point.values = {{"train_loss", loss_sum_ / terms_}, {"lr", e.lr}, {"samples_per_s", e.samples_per_s}};
  if (correct_sum_ > 0) point.values.emplace_back("train_accuracy", correct_sum_ / terms_);
  if (e.result.gradient_norm > 0) point.values.emplace_back("gradient_norm", e.result.gradient_norm);
  writer_->record(std::move(point));
  loss_sum_ = correct_sum_ = terms_ = 0;
  pass_warnings();
}

void MetricsListener::on_evaluation(const EvaluationEvent& e) {
  MetricPoint point{
      .step = e.step, .epoch = e.epoch, .time = clock_.unix_seconds(), .values = {{"test_loss", e.test.loss}}};
  if (e.test.accuracy >= 0) point.values.emplace_back("test_accuracy", e.test.accuracy);
  writer_->record(std::move(point));
}

void MetricsListener::pass_warnings() {
  for (const std::string& warning : writer_->warnings()) tell_(warning);
}

void MetricsListener::finish() {
  writer_->flush().wait();
  pass_warnings();
}

}  // namespace echelon::cli
