#pragma once
// A wish to stop, from the keyboard or from whoever runs the machine. The first SIGINT, SIGTERM or SIGUSR1 asks for a
// good end: save and exit resumable. A second one ends the program at once, with the shell's exit code for that signal;
// one that follows within `same_wish_seconds` is the same wish, heard twice (programs such as timeout signal a process
// and its group).
//
// A signal that was blocked until now is heard at once, and no signal of these is blocked any more. One object at a
// time; the handlers that were there before come back when it goes away.

#include <atomic>
#include <string>

namespace echelon {

inline constexpr double same_wish_seconds = 0.3;

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;

  const std::atomic<bool>& flag() const;  // true once a signal has come
  std::string name() const;               // "SIGTERM"; empty if none has come
};

// For a process whose launcher hears the same signals, passes them on, and ends it when a second one comes: whoever
// signals them all together must not be counted twice here. From then on signals that come once StopSignals are gone
// mean nothing either: the end of a rank that was asked to stop is not to be disturbed.
void leave_timeouts_to_launcher();

}  // namespace echelon
