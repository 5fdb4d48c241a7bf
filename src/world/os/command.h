#pragma once
// Runs another program to its end: started with its arguments (no shell), with empty input, its output collected, and
// killed after a time limit. Thread-safe.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace echelon {

struct Command {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH
  std::string directory = ".";    // where it runs
  double limit_seconds = 600;
  std::function<void()> tick;  // if set: called about ten times a second while waiting
  // If set: once it is true the program is asked to end (SIGTERM), and waited for as before. Ctrl-C then reaches it
  // only this way, and not a second time from the terminal.
  const std::atomic<bool>* stop = nullptr;
};

struct CommandResult {
  int exit_code = 0;   // 128 + n if ended by signal n
  std::string output;  // standard output and error together, the last 64 KiB
};

// Failure if the program cannot be started (naming it) or outlives the limit.
CommandResult run_command(const Command& command);

}  // namespace echelon
