#include "track/metrics.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "track/metric_line.h"

namespace echelon {

const double* MetricPoint::find(std::string_view name) const {
  const auto it = std::ranges::find(values, name, &std::pair<std::string, double>::first);
  return it == values.end() ? nullptr : &it->second;
}

namespace {

std::string metric_value(double value) {
  return std::isfinite(value) ? fmt::format("{}", value)
         : std::isnan(value)  ? "\"nan\""
         : value > 0          ? "\"inf\""
                              : "\"-inf\"";
}

// The number that `number` wrote; none if it is something else.
std::optional<double> number_in(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::nan("");
  if (value == "inf") return INFINITY;
  if (value == "-inf") return -INFINITY;
  return std::nullopt;
}

// Calls `each` with every line; `whole` is false for a last one without its newline. Long ones are cut.
void for_each_line(Disk& disk, const std::string& path, const std::function<void(std::string_view, bool whole)>& each) {
  constexpr std::size_t longest = 1u << 20;
  const auto file = disk.open(path);
  std::vector<std::byte> piece(1u << 18);
  std::string line;
  std::uint64_t at = 0;
  while (const std::size_t n = file->read_at(at, piece)) {
    at += n;
    std::string_view text(reinterpret_cast<const char*>(piece.data()), n);
    for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
      line += text.substr(0, end);
      each(line, true);
      line.clear();
    }
    line += text.substr(0, longest - std::min(longest, line.size()));
  }
  if (!line.empty()) each(line, false);
}

}  // namespace

std::string to_jsonl(const MetricPoint& point) {
  std::string line = fmt::format("{{\"step\":{},\"epoch\":{},\"time\":{}", point.step, metric_value(point.epoch),
                                 metric_value(point.time));
  for (const auto& [name, value] : point.values) line += fmt::format(",{}:{}", Json(name).dump(), metric_value(value));
  return line + "}\n";
}

std::optional<MetricPoint> parse_metric(std::string_view line) {
  if (auto plain = parse_plain_metric(line)) return plain;
  try {
    const Json json = parse_json(line, "line", {.depth = 2, .values = 100'000});
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) return std::nullopt;
    MetricPoint point;
    for (const auto& [key, value] : json.items()) {
      const auto n = number_in(value);
      if (key == "step")
        point.step = value.get<std::int64_t>();
      else if (n && key == "epoch")
        point.epoch = *n;
      else if (n && key == "time")
        point.time = *n;
      else if (n)
        point.values.emplace_back(key, *n);
    }
    return point;
  } catch (const BadInput&) {
    return std::nullopt;
  }
}

MetricsFile read_metrics(Disk& disk, const std::string& path) {
  MetricsFile found;
  if (!disk.exists(path)) return found;
  for_each_line(disk, path, [&](std::string_view line, bool whole) {
    if (line.empty()) return;
    auto point = whole ? parse_metric(line) : std::nullopt;
    if (point)
      found.points.push_back(std::move(*point));
    else
      ++found.damaged;
  });
  return found;
}

std::vector<MetricPoint> read_evaluations(Disk& disk, const std::string& path) {
  std::vector<MetricPoint> found;
  if (!disk.exists(path)) return found;
  for_each_line(disk, path, [&](std::string_view line, bool whole) {
    // Most lines are of training: they are not even parsed.
    if (!whole || (line.find("\"test_loss\"") == line.npos && line.find("\"val_loss\"") == line.npos)) return;
    if (auto point = parse_metric(line)) found.push_back(std::move(*point));
  });
  return found;
}

MetricsFile cut_metrics(Disk& disk, const std::string& path, std::int64_t step) {
  MetricsFile kept;
  if (!disk.exists(path)) return kept;
  std::string text;  // the lines as they are
  bool changes = false;
  for_each_line(disk, path, [&](std::string_view line, bool whole) {
    auto point = whole ? parse_metric(line) : std::nullopt;
    if (!point) ++kept.damaged;
    if (!point || point->step > step) {
      changes = true;
      return;
    }
    text.append(line) += '\n';
    kept.points.push_back(std::move(*point));
  });
  if (changes) write_file_atomically(disk, path, text);
  return kept;
}

MetricsWriter::Output jsonl_output(Disk& disk, const std::string& path) {
  return {std::make_unique<AppendLog>(disk, path), to_jsonl};
}

struct MetricsWriter::Batch {
  std::vector<MetricPoint> points;
  bool sync = false;
  std::vector<std::string> warnings;  // the worker's until `done` is ready
  std::shared_future<void> done;
};

MetricsWriter::MetricsWriter(std::unique_ptr<Background> worker, std::vector<Output> outputs)
    : outputs_(std::move(outputs)), in_trouble_(outputs_.size(), 0), worker_(std::move(worker)) {}

MetricsWriter::~MetricsWriter() {
  do flush().wait();
  while (!pending_.empty());
}

void MetricsWriter::write(Batch& batch) {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    auto& [log, record] = outputs_[i];
    bool fine = true;
    const auto attempt = [&](auto&& act) {
      try {
        act();
      } catch (const std::exception& e) {
        if (!in_trouble_[i])
          batch.warnings.push_back(fmt::format("metrics are kept in memory for now, training goes on: {}", e.what()));
        in_trouble_[i] = 1;
        fine = false;
      }
    };
    std::string records;
    for (const auto& point : batch.points) attempt([&] { records += record(point); });
    if (!records.empty()) attempt([&] { log->append(records); });
    if (batch.sync) attempt([&] { log->sync(); });
    if (fine && in_trouble_[i]) {
      in_trouble_[i] = 0;
      if (log->dropped() > 0) batch.warnings.push_back(fmt::format("{}: some points were lost", log->path()));
    }
  }
}

void MetricsWriter::collect() {
  std::erase_if(given_, [&](const auto& batch) {
    if (!is_done(batch->done)) return false;
    warnings_.insert(warnings_.end(), batch->warnings.begin(), batch->warnings.end());
    return true;
  });
}

std::shared_ptr<MetricsWriter::Batch> MetricsWriter::take_pending(bool sync) {
  auto batch = std::make_shared<Batch>();
  batch->sync = sync;
  batch->points = std::move(pending_);
  pending_.clear();
  auto done = worker_->try_post([this, batch] { write(*batch); });
  if (!done) {  // the queue is full: give it back
    pending_ = std::move(batch->points);
    return nullptr;
  }
  batch->done = done->share();
  given_.push_back(batch);
  return batch;
}

void MetricsWriter::record(MetricPoint point) {
  collect();
  if (pending_.size() < most_pending)
    pending_.push_back(std::move(point));
  else if (dropped_++ == 0)
    warnings_.push_back("the disk does not keep up: some metrics are lost, training goes on");
  if (given_.empty()) take_pending(false);  // else they go together once the worker is free
}

std::shared_future<void> MetricsWriter::flush() {
  collect();
  if (const auto batch = take_pending(true)) return batch->done;
  return given_.back()->done;  // the queue is full of flushes: the last of them has to do
}

std::vector<std::string> MetricsWriter::warnings() {
  collect();
  return std::exchange(warnings_, {});
}

}  // namespace echelon
