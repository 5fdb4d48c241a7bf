#include "web/trace_store.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"

namespace echelon::web {

namespace {

constexpr std::uint64_t largest_trace = std::uint64_t{1} << 30;
constexpr std::size_t longest_line = 1u << 16;
constexpr const char* message_category = "message";

class TraceReader {
 public:
  void line(std::string_view text) {
    if (text.ends_with(',')) text.remove_suffix(1);
    if (!text.starts_with("{\"ph\":")) return;
    const Json event = parse_json(text, "a line of the trace", {.depth = 4, .values = 64});
    const std::string kind = event.value("ph", "");
    const int rank = event.value("pid", 0), core = event.value("tid", 0);
    if (kind == "M" && event.value("name", "") == "thread_name")
      row(rank, core).label = event.at("args").value("name", "");
    if (kind != "X") return;
    const double begin = event.value("ts", 0.0) * 1e-6, end = begin + event.value("dur", 0.0) * 1e-6;
    if (!std::isfinite(begin) || !std::isfinite(end) || end < begin) return;
    const TraceBar bar{begin, end, number_of(event.value("name", "")), number_of(event.value("cat", ""))};
    row(rank, core).bars.push_back(bar);
    if (trace_.names[bar.category] == message_category)
      trace_.messages.push_back(
          {begin, rank, event.at("args").value("to", -1), event.at("args").value("bytes", 0.0), bar.name});
    trace_.end = std::max(trace_.end, end);
  }
  ReadTrace finish() {
    for (auto& [key, row] : rows_) {
      std::ranges::stable_sort(row.bars, {}, &TraceBar::begin);
      trace_.rows.push_back(std::move(row));
    }
    std::ranges::stable_sort(trace_.messages, {}, &TraceMessage::at);
    return std::move(trace_);
  }

 private:
  TraceRow& row(int rank, int core) {
    TraceRow& r = rows_[{rank, core}];
    r.rank = rank, r.core = core;
    return r;
  }
  std::uint32_t number_of(const std::string& name) {
    const auto [it, is_new] = numbers_.try_emplace(name, static_cast<std::uint32_t>(trace_.names.size()));
    if (is_new) trace_.names.push_back(name);
    return it->second;
  }
  ReadTrace trace_;
  std::map<std::pair<int, int>, TraceRow> rows_;
  std::map<std::string, std::uint32_t> numbers_;
};

}  // namespace

ReadTrace parse_trace(File& file, const std::string& path) {
  if (file.size() > largest_trace)
    bad_input("{}: {} bytes are too many for the page; https://ui.perfetto.dev opens it", path, file.size());
  TraceReader reader;
  std::vector<char> piece(1u << 20);
  std::string line;
  std::uint64_t at = 0;
  try {
    while (const std::size_t n = file.read_at(at, std::as_writable_bytes(std::span(piece)))) {
      at += n;
      std::string_view text(piece.data(), n);
      for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
        line += text.substr(0, end);
        reader.line(line);
        line.clear();
      }
      line += text;
      if (line.size() > longest_line) bad_input("it is not written as Echelon writes traces");
    }
    return reader.finish();
  } catch (const Json::exception& problem) {
    bad_input("{}: is no trace ({})", path, problem.what());
  } catch (const BadInput& problem) {
    bad_input("{}: {}", path, problem.what());
  }
}

Json trace_window(const ReadTrace& trace, double from, double to, int dots) {
  const double dot = std::max(1e-12, (to - from) / std::max(1, dots));
  Json rows = Json::array();
  for (const TraceRow& row : trace.rows) {
    Json bars = Json::array();
    const auto give = [&](double begin, double end, std::uint32_t name, std::uint32_t category) {
      bars.push_back({begin, end, name, category});
    };
    // What lies within one dot is put together; the longest of it gives the name.
    double begin = 0, end = -1;
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> parts;
    const auto flush = [&] {
      if (parts.empty()) return;
      const auto longest = std::ranges::max_element(parts, {}, [](const auto& p) { return p.second; });
      give(begin, end, longest->first.first, longest->first.second);
      parts.clear();
    };
    for (const TraceBar& bar : row.bars) {
      if (bar.end < from || bar.begin > to) continue;
      if (bar.end - bar.begin >= dot) {
        flush();
        give(bar.begin, bar.end, bar.name, bar.category);
        continue;
      }
      if (!parts.empty() && (bar.begin > begin + dot)) flush();
      if (parts.empty()) begin = bar.begin, end = bar.end;
      end = std::max(end, bar.end);
      parts[{bar.name, bar.category}] += bar.end - bar.begin;
    }
    flush();
    rows.push_back({{"rank", row.rank}, {"core", row.core}, {"label", row.label}, {"bars", bars}});
  }
  return {{"names", trace.names}, {"end", trace.end}, {"rows", rows}};
}

Json trace_messages(const ReadTrace& trace, double from, std::size_t most) {
  Json list = Json::array();
  auto at = std::ranges::lower_bound(trace.messages, from, {}, &TraceMessage::at);
  for (; at != trace.messages.end() && list.size() < most; ++at)
    list.push_back({at->at, at->from, at->to, at->bytes, at->name});
  const bool none = trace.messages.empty();
  return {{"messages", list},
          {"names", trace.names},
          {"all", trace.messages.size()},
          {"first", none ? 0 : trace.messages.front().at},
          {"last", none ? 0 : trace.messages.back().at}};
}

Json trace_totals(const ReadTrace& trace) {
  struct Total {
    std::int64_t count = 0;
    double seconds = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Total> totals;
  for (const TraceRow& row : trace.rows)
    for (const TraceBar& bar : row.bars) {
      if (trace.names[bar.category] == message_category) continue;
      Total& t = totals[{bar.name, bar.category}];
      ++t.count;
      t.seconds += bar.end - bar.begin;
    }
  std::vector<std::pair<std::pair<std::uint32_t, std::uint32_t>, Total>> sorted(totals.begin(), totals.end());
  std::ranges::stable_sort(sorted, std::greater{}, [](const auto& t) { return t.second.seconds; });
  Json list = Json::array();
  for (const auto& [key, total] : sorted)
    list.push_back({{"name", trace.names[key.first]},
                    {"category", trace.names[key.second]},
                    {"count", total.count},
                    {"seconds", total.seconds}});
  return list;
}

const ReadTrace& TraceStore::trace(const std::string& path) {
  if (!disk_.exists(path)) bad_input("this run has no trace; train it with --trace");
  const auto stamp = disk_.stamp(path);
  const std::uint64_t size = stamp ? stamp->size : 0, inode = stamp ? stamp->inode : 0;
  const auto it = std::ranges::find(entries_, path, &Entry::path);
  if (it != entries_.end() && it->size == size && it->inode == inode) {
    entries_.splice(entries_.begin(), entries_, it);
    return entries_.front().trace;
  }
  if (it != entries_.end()) entries_.erase(it);
  entries_.push_front({path, size, inode, parse_trace(*disk_.open(path), path)});
  if (entries_.size() > most_traces) entries_.pop_back();
  return entries_.front().trace;
}

}  // namespace echelon::web
