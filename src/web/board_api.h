#pragma once
// What the page asks, answered from the registry, the runs' folders and what is kept of them in memory. Only reads,
// apart from the registry, which is brought up to date (at most about twice a second).
//
//   /api/runs?q=QUESTION            the runs, with every setting and result, and the names that questions may use
//   /api/run?name=RUN               one of them: recipe, summary, log, checkpoints, what was written at its end
//   /api/pictures?run=RUN           what `echelon sample --keep` has drawn with it, as PNG
//   /api/metrics?run=..             names of metrics
//   /api/curves?run=..&metric=..&x=step&from=&to=&points=   curves, made smaller (web/downsample.h)
//   /api/reach?run=..&metric=..&target=..    where each run first reached a value: step, seconds, samples, bytes
//   /api/trace?run=..&from=&to=&dots=, /api/trace/totals?run=..
//   /api/graph?run=.., /api/system?run=..    what the program says of the run's network and system
//   /metrics                        the newest numbers of live runs, for Prometheus
//
// Thread-safe: one request at a time is answered. BadInput and Failure become 400, 404 and 500 with their text.

#include <functional>
#include <memory>
#include <string>

#include "registry/index.h"
#include "web/reply.h"
#include "web/series_store.h"
#include "web/trace_store.h"
#include "world/os/clock.h"
#include "world/os/mutex.h"

namespace echelon::web {

// What only the program above this room knows.
struct BoardHooks {
  ReadRecord read;                                      // how a run becomes a record
  std::function<Json(const RunFolder& folder)> graph;   // layers, shapes, FLOPs, memory of its network
  std::function<Json(const RunFolder& folder)> system;  // composition and traffic of its system; null: none
};

class BoardApi {
 public:
  BoardApi(std::string root, Clock& clock, BoardHooks hooks);

  Reply get(const std::string& path, const Query& query);

  // What has changed since the caller's last look: {"runs": [names]}; `seen` is the caller's memory.
  Json changes(std::map<std::string, std::string>& seen);

  // For actions (web/board_actions.h), under the same lock.
  void with_registry(const std::function<void(Registry&, Disk&, const std::string& root)>& f);
  const BoardHooks& hooks() const { return hooks_; }

 private:
  void refresh();
  RunFolder folder_of(const std::string& name);  // BadInput if there is no such run
  Reply answer(const std::string& path, const Query& query);
  Json runs(const Query& query);
  Json run(const Query& query);
  Json metrics_of(const Query& query);
  Json curves(const Query& query);
  Json reach(const Query& query);
  Json trace(const Query& query);

  const std::string root_;
  Clock& clock_;
  const BoardHooks hooks_;
  Mutex mutex_;
  std::unique_ptr<Disk> disk_;    // for the index: stamps of everything
  std::unique_ptr<Disk> inside_;  // for files of runs: follows no link out of the root
  Registry registry_;
  SeriesStore series_;
  TraceStore traces_;
  double refreshed_ = -1e9;
};

}  // namespace echelon::web
