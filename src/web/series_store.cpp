#include "web/series_store.h"

#include <algorithm>
#include <cmath>

namespace echelon::web {

namespace {

void append_point(Columns& columns, const MetricPoint& point) {
  const double missing = std::nan("");
  const std::size_t rows = columns.step.size();
  columns.step.push_back(static_cast<double>(point.step));
  columns.epoch.push_back(point.epoch);
  columns.time.push_back(point.time);
  for (const auto& [name, value] : point.values) {
    std::vector<double>& column = columns.values[name];
    column.resize(rows, missing);
    column.push_back(value);
  }
}

}  // namespace

std::vector<double> Columns::column(const std::string& name) const {
  if (name == "step") return step;
  if (name == "epoch") return epoch;
  if (name == "time") return time;
  const auto it = values.find(name);
  if (it == values.end()) return {};
  std::vector<double> whole = it->second;
  whole.resize(step.size(), std::nan(""));
  return whole;
}

void SeriesStore::read_more(Entry& entry) {
  if (!disk_.exists(entry.path)) {
    entry = {.path = entry.path, .columns = {}, .read = 0, .inode = 0, .numbers = 0};
    return;
  }
  const auto stamp = disk_.stamp(entry.path);
  const auto file = disk_.open(entry.path);
  const std::uint64_t size = file->size(), inode = stamp ? stamp->inode : 0;
  if (size < entry.read || inode != entry.inode)
    entry = {.path = entry.path, .columns = {}, .read = 0, .inode = inode, .numbers = 0};
  std::vector<char> piece(1u << 18);
  std::string line;
  for (std::uint64_t at = entry.read; at < size;) {
    const std::size_t n = file->read_at(at, std::as_writable_bytes(std::span(piece)));
    if (n == 0) break;
    at += n;
    std::string_view text(piece.data(), n);
    for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
      line += text.substr(0, end);
      if (const auto point = parse_metric(line)) {
        append_point(entry.columns, *point);
        entry.numbers += 3 + point->values.size();
      }
      entry.read += line.size() + 1;
      line.clear();
    }
    if (line.size() + text.size() > (1u << 20)) break;  // no line of ours is so long
    line += text;
  }
}

const Columns& SeriesStore::columns(const RunFolder& folder) {
  const std::string path = folder.metrics();
  auto it = std::ranges::find(entries_, path, &Entry::path);
  if (it == entries_.end())
    entries_.push_front({.path = path, .columns = {}, .read = 0, .inode = 0, .numbers = 0});
  else
    entries_.splice(entries_.begin(), entries_, it);
  Entry& entry = entries_.front();
  numbers_ -= entry.numbers;
  read_more(entry);
  numbers_ += entry.numbers;
  while (numbers_ > most_ && entries_.size() > 1) {
    numbers_ -= entries_.back().numbers;
    entries_.pop_back();
  }
  return entry.columns;
}

}  // namespace echelon::web
