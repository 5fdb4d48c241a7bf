#pragma once
// How far a training is, for a person who watches. On a terminal one line that is redrawn; elsewhere a plain line now
// and then. The time that is left is computed from how long the latest steps really took, pauses included, and is not
// shown before there is something to compute it from.

#include <cstdint>
#include <deque>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "world/os/clock.h"
#include "world/os/mutex.h"

namespace echelon {

struct ProgressState {
  std::int64_t step = 0, steps = 0;                // done, and in all (0: unknown)
  std::int64_t epoch = 0, epochs = 0;              // the one under way, counted from 1, and in all (0: not shown)
  std::optional<double> loss = {}, accuracy = {};  // accuracy as a share, 0 to 1
  std::optional<double> samples_per_s = {};
  std::optional<double> peak_share = {};  // of the processor's FMA peak, 0 to 1
  std::optional<double> seconds_left = {};
};

// A line of at most `columns` columns. What matters less is left out first when there is little room.
std::string progress_bar(const ProgressState& state, int columns);
std::string progress_text(const ProgressState& state);  // the same in words, for logs

// Estimates the time that is left from the steps of the last while.
class Eta {
 public:
  void add(double now, std::int64_t done);
  std::optional<double> seconds_left(std::int64_t steps) const;  // none while it would be a guess

 private:
  struct Sample {
    double time;
    std::int64_t done;
  };
  std::deque<Sample> samples_;  // front: where the window begins
  double start_ = 0;
};

struct ProgressOptions {
  bool live = false;                                 // redraw one line; else plain lines
  std::function<int()> columns = [] { return 80; };  // asked at every redraw: windows are resized
  double seconds_between = 0.1;                      // redraws; plain lines come every five seconds, later less often
};

// Tasks may use it at the same time: it is one line after the other. `out` and `clock` must outlive it.
class Progress {
 public:
  Progress(std::ostream& out, Clock& clock, ProgressOptions options);

  void update(ProgressState state);  // fills seconds_left itself
  void say(std::string_view line);   // a line of its own, above the bar
  void finish();                     // the last state, and the line is ended

 private:
  void draw(double now);

  std::ostream& out_;
  Clock& clock_;
  const ProgressOptions options_;
  Eta eta_;
  ProgressState state_;
  std::optional<double> start_, drawn_at_;
  bool dirty_ = false;    // `state_` has something that was not shown
  bool on_line_ = false;  // a bar stands on the current line
  Mutex mutex_;
};

}  // namespace echelon
