#pragma once
// Requests to stop, from the keyboard, a scheduler or a terminal that closes. The first SIGINT, SIGTERM, SIGUSR1 or
// SIGHUP (unless nohup has it ignored) asks the program to save and exit, resumable. A second one ends the program at
// once, with the shell's exit code for that signal; one that follows within `same_request_seconds` is the same request,
// delivered twice (programs such as timeout signal a process and its group).
//
// A signal that was blocked until now is delivered at once; these signals are not blocked any more. One object at a
// time; its destructor restores the earlier handlers.

#include <signal.h>

#include <array>
#include <atomic>
#include <string>

namespace echelon {

inline constexpr double same_request_seconds = 0.3;
inline constexpr std::array<int, 4> stop_signals{SIGINT, SIGTERM, SIGUSR1, SIGHUP};
bool is_ignored(int signal);  // because nohup or the like has said so: only SIGHUP

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;

  const std::atomic<bool>& flag() const;  // true once a signal has come
  std::string name() const;               // "SIGTERM"; empty if none has come
};

// For a process whose launcher gets the same signals, passes the first one on, and ends the process on the second: so
// only the first counts here, since a signal to the whole group arrives twice. From then on these signals are also
// ignored once StopSignals is destroyed, so that they do not disturb the end of a rank that was asked to stop.
void leave_second_signal_to_launcher();

}  // namespace echelon
