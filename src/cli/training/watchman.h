#pragma once
// The launcher's eye on its workers: looks at what they record (run/health/diagnosis.h) while they run, says in one
// line what is wrong with whom and what is done about it, and writes that into incidents.jsonl of the run's folder. A
// worker that was stopped for too long is killed, so that it is replaced.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "run/health/diagnosis.h"
#include "world/os/clock.h"

namespace echelon::cli {

class Watchman {
 public:
  // `say`: one line for people.
  Watchman(double evict_after, std::function<void(const std::string&)> say);
  // Some ten times a second while workers live; `folder`: of the run, empty before it is known.
  void look(const std::string& folder);
  // A worker's process has ended by a signal: what it did last; empty if nobody knows.
  std::string last_words(const std::string& folder, int rank) const;
  // Into incidents.jsonl; never fails.
  void record(const std::string& folder, const Diagnosis& what, const std::string& done) const;
  void begin_generation() { before_.clear(), told_ = {}; }

 private:
  static constexpr double between_looks = 0.5;  // seconds
  void tell(const std::string& folder, const Diagnosis& what);

  const double evict_after_;
  const std::function<void(const std::string&)> say_;
  const std::unique_ptr<Clock> clock_;
  double looked_ = -1e9, stopped_since_ = -1;
  std::vector<RankLook> before_;
  Diagnosis last_, told_;  // of the last look; what was said last
};

}  // namespace echelon::cli
