#pragma once
// A wish to stop, from the keyboard or from whoever runs the machine. The first SIGINT, SIGTERM or SIGUSR1 asks for a
// good end: save and exit resumable. A second one ends the program at once, with the shell's exit code for that signal.
//
// One object at a time; the handlers that were there before come back when it goes away.

#include <atomic>
#include <string>

namespace echelon {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;

  const std::atomic<bool>& flag() const;  // true once a signal has come
  std::string name() const;               // "SIGTERM"; empty if none has come
};

}  // namespace echelon
