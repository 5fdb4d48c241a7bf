#pragma once
// The trace of a run (trace.json, track/trace.h) for the page: what every rank and core did in a stretch of time, with
// bars that are too short to be seen put together. Read line by line as `Trace::write` writes it; the traces that were
// looked at last stay in memory. Not thread-safe. BadInput for a file that is none or too large.

#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "base/json.h"
#include "world/os/disk.h"

namespace echelon::web {

struct TraceBar {
  double begin = 0, end = 0;             // seconds
  std::uint32_t name = 0, category = 0;  // numbers in Trace::names
};

struct TraceRow {
  int rank = 0, core = 0;
  std::string label;
  std::vector<TraceBar> bars;  // by begin
};

struct TraceMessage {
  double at = 0;  // seconds
  int from = 0, to = 0;
  double bytes = 0;
  std::uint32_t name = 0;
};

struct ReadTrace {
  std::vector<std::string> names;
  std::vector<TraceRow> rows;          // by rank, then core
  std::vector<TraceMessage> messages;  // by at
  double end = 0;
};

ReadTrace parse_trace(File& file, const std::string& where);

// What there is between two moments for a picture so many dots wide: {"names", "end", "rows": [{"rank", "core",
// "label", "bars": [[begin, end, name, category], ...]}]}. Bars shorter than a dot that follow each other become one
// of the commonest name among them.
Json trace_window(const ReadTrace& trace, double from, double to, int dots);

// The first `most` messages that were sent at `from` or later: {"messages": [[at, from, to, bytes, name], ...],
// "names", "all": how many the whole trace has, "first", "last": when the first and the last of all were sent}.
Json trace_messages(const ReadTrace& trace, double from, std::size_t most);

// Seconds that every name of a category but messages has taken in all: [{"name", "category", "count", "seconds"}],
// longest first.
Json trace_totals(const ReadTrace& trace);

class TraceStore {
 public:
  explicit TraceStore(Disk& disk) : disk_(disk) {}
  const ReadTrace& trace(const std::string& path);  // good until the next call

 private:
  struct Entry {
    std::string path;
    std::uint64_t size = 0, inode = 0;
    ReadTrace trace;
  };
  static constexpr std::size_t most_traces = 3;
  Disk& disk_;
  std::list<Entry> entries_;
};

}  // namespace echelon::web
