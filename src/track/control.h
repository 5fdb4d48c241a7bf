#pragma once
// Requests to a run that goes on: control.json in its folder, written by somebody else (the page), taken away by the
// run between two steps. What the run has done is a line of journal.jsonl, so that a run whose rate was changed by hand
// says so. One request waits at a time. BadInput for what is none.

#include <optional>
#include <string>

#include "track/run.h"
#include "world/os/clock.h"

namespace echelon {

struct ControlRequest {
  std::string action;  // "pause", "resume", "checkpoint", "stop", "rate", "resize", "switch"
  // "rate": from now on the schedule's rate is multiplied by it; 1: as the recipe says. "resize": so many workers
  double value = 1;
  std::string system = {}, codec = {}, plan = {};  // "switch": one of them
  std::string servers = {};                        // the same: a number, "all" or "quickest"
};
Json to_json(const ControlRequest& request);
std::string in_words(const ControlRequest& request);  // of "switch": "system easgd"

constexpr int most_workers_asked = 1024;
void check_control(const ControlRequest& request);
ControlRequest parse_control(std::string_view text);  // as control.json has it

// BadInput while another request waits.
void send_control(Disk& disk, const RunFolder& folder, const ControlRequest& request);

// The run's side; belongs to one thread.
class ControlReader {
 public:
  // `clock` is the real one. `disk` and `clock` must outlive it. A request from before is forgotten.
  ControlReader(Disk& disk, Clock& clock, RunFolder folder);

  bool waiting();  // whether a request is there; looks at the disk a few times a second
  // Takes the request away; none if there is none, or none that can be read.
  std::optional<ControlRequest> take();
  void journal(std::int64_t step, const ControlRequest& request);  // what was done; never fails
  void journal(std::int64_t step, Json change);  // another change of the run, as an object; never fails

 private:
  static constexpr double between_looks = 0.2;
  Disk& disk_;
  Clock& clock_;
  const RunFolder folder_;
  double looked_ = -1e9;
  bool there_ = false;
};

}  // namespace echelon
