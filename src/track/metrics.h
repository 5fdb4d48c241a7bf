#pragma once
// What a training reports as it goes: points of named numbers, one JSON object a line in metrics.jsonl, and the same as
// TensorBoard event files (track/event_file.h). Recording never waits and never fails: points are written in the
// background, and a disk that refuses is a warning. After a resume the file holds every step once.

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "track/append_log.h"
#include "world/os/background.h"
#include "world/os/disk.h"

namespace echelon {

struct MetricPoint {
  std::int64_t step = 0;
  double epoch = 0;
  double time = 0;  // seconds since 1970
  std::vector<std::pair<std::string, double>> values;

  const double* find(std::string_view name) const;  // nullptr if absent
};

// One line, with its newline. Numbers that JSON does not have are written as "nan", "inf" and "-inf".
std::string to_jsonl(const MetricPoint& point);
std::optional<MetricPoint> parse_metric(std::string_view line);  // without the newline; none if it is no point

struct MetricsFile {
  std::vector<MetricPoint> points;
  std::int64_t damaged = 0;  // lines that are no points; the last one, if it has no end, counts
};

MetricsFile read_metrics(Disk& disk, const std::string& path);  // nothing if there is no such file
// The points of evaluations alone (those with a loss of another part), many times quicker.
std::vector<MetricPoint> read_evaluations(Disk& disk, const std::string& path);

// Forgets every point after `step`, and damaged lines: what a run does that goes on from there. Returns what is left,
// and how many lines were damaged.
MetricsFile cut_metrics(Disk& disk, const std::string& path, std::int64_t step);

class MetricsWriter {
 public:
  // One kind of file: how a point becomes bytes.
  struct Output {
    std::unique_ptr<AppendLog> log;
    std::function<std::string(const MetricPoint&)> record;
  };

  // `worker` is for this object alone.
  MetricsWriter(std::unique_ptr<Background> worker, std::vector<Output> outputs);
  ~MetricsWriter();  // writes what is left

  void record(MetricPoint point);

  // Ready when everything recorded so far was written and synced (or refused); holds no failure.
  std::shared_future<void> flush();

  std::vector<std::string> warnings();  // since the last call: what the disk refused, once for each spell of trouble

 private:
  struct Batch;
  std::shared_ptr<Batch> take_pending(bool sync);
  void write(Batch& batch);  // runs in the background
  void collect();

  static constexpr std::size_t most_pending = 10'000;
  std::vector<Output> outputs_;
  std::vector<char> in_trouble_;               // by output; the worker's
  std::vector<MetricPoint> pending_;           // recorded, not given to the worker yet
  std::int64_t dropped_ = 0;                   // because there were too many of those
  std::vector<std::shared_ptr<Batch>> given_;  // to the worker, oldest first
  std::vector<std::string> warnings_;
  std::unique_ptr<Background> worker_;  // last: ends before what its jobs touch
};

MetricsWriter::Output jsonl_output(Disk& disk, const std::string& path);

}  // namespace echelon
