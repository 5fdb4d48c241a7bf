#include "cli/training/run_listeners.h"

#include <algorithm>

#include "cli/answers/metric_text.h"
#include "track/event_file.h"

namespace echelon::cli {

namespace {
constexpr std::size_t jobs_ahead = 64;
}

MetricsListener::MetricsListener(Disk& disk, Clock& clock, const RunFolder& folder, std::int64_t resumed_step,
                                 std::int64_t every, TellNote tell)
    : clock_(clock), every_(every), tell_(std::move(tell)) {
  const MetricsFile kept = cut_metrics(disk, folder.metrics(), resumed_step);
  if (kept.damaged > 0)
    tell_(fmt::format("{}: {} damaged line{} removed", folder.metrics(), kept.damaged,
                      kept.damaged == 1 ? " was" : "s were"));
  if (!kept.points.empty()) last_step_ = kept.points.back().step;
  for (const MetricPoint& p : kept.points)
    for (const auto& [name, field] : {std::pair("seconds", &before_.seconds), std::pair("samples", &before_.samples),
                                      std::pair("bytes", &before_.bytes)})
      if (const double* value = p.find(name)) *field = *value;
  now_ = before_;
  std::vector<MetricsWriter::Output> outputs;
  outputs.push_back(jsonl_output(disk, folder.metrics()));
  outputs.push_back(event_output(disk, folder.tensorboard(), clock.unix_seconds(), kept.points));
  writer_ = std::make_unique<MetricsWriter>(make_background("metrics", jobs_ahead), std::move(outputs));
}

MetricPoint MetricsListener::point(std::int64_t step, double epoch) const {
  MetricPoint p{.step = step, .epoch = epoch, .time = clock_.unix_seconds(), .values = {}};
  p.values = {{"seconds", now_.seconds}, {"samples", now_.samples}};
  if (now_.bytes >= 0) p.values.emplace_back("bytes", now_.bytes);
  return p;
}

void MetricsListener::on_step(const StepEvent& e) {
  now_.seconds = before_.seconds + e.seconds;
  now_.samples += static_cast<double>(e.result.samples);
  samples_ += static_cast<double>(e.result.samples);
  if (e.bytes >= 0) now_.bytes = std::max(0.0, before_.bytes) + e.bytes;
  loss_sum_ += e.result.loss * static_cast<double>(e.result.terms);
  correct_sum_ += e.result.correct;
  terms_ += static_cast<double>(e.result.terms);
  // Where workers go at their own pace, a step may be reported in pieces, and several steps at once.
  const bool due = e.step / every_ > last_step_ / every_ || e.step == e.total_steps;
  if (!due || e.step <= last_step_) return;
  last_step_ = e.step;
  MetricPoint p = point(e.step, e.epoch);
  p.values.emplace_back("train_loss", loss_sum_ / terms_);
  p.values.emplace_back("lr", e.lr);
  if (e.step_seconds > seconds_) p.values.emplace_back("samples_per_s", samples_ / (e.step_seconds - seconds_));
  seconds_ = e.step_seconds, samples_ = 0;
  if (correct_sum_ > 0) p.values.emplace_back("train_accuracy", correct_sum_ / terms_);
  if (e.result.gradient_norm > 0) p.values.emplace_back("gradient_norm", e.result.gradient_norm);
  writer_->record(std::move(p));
  loss_sum_ = correct_sum_ = terms_ = 0;
  pass_warnings();
}

void MetricsListener::on_evaluation(const EvaluationEvent& e) {
  MetricPoint p = point(e.step, e.epoch);
  for (auto& value : named_values(e.result, e.part + "_")) p.values.push_back(std::move(value));
  if (e.tested_step >= 0) p.values.emplace_back("tested_step", static_cast<double>(e.tested_step));
  writer_->record(std::move(p));
}

void MetricsListener::pass_warnings() {
  for (const std::string& warning : writer_->warnings()) tell_(warning);
}

void MetricsListener::finish() {
  writer_->flush().wait();
  pass_warnings();
}

}  // namespace echelon::cli
