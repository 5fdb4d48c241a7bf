#include "world/signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>

namespace echelon {

namespace {

// A signal handler can reach nothing but globals; these are the only ones, and only this file sees them.
std::atomic<bool> stop_wanted{false};
std::atomic<int> first_signal{0};
constexpr std::array<int, 3> handled{SIGINT, SIGTERM, SIGUSR1};
std::array<struct sigaction, 3> before;

void on_signal(int signal) {
  if (stop_wanted.exchange(true)) _exit(128 + signal);
  first_signal.store(signal);
}

}  // namespace

StopSignals::StopSignals() {
  stop_wanted = false;
  first_signal = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < handled.size(); ++i) sigaction(handled[i], &action, &before[i]);
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < handled.size(); ++i) sigaction(handled[i], &before[i], nullptr);
}

const std::atomic<bool>& StopSignals::flag() const { return stop_wanted; }

std::string StopSignals::name() const {
  switch (first_signal.load()) {
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    case SIGUSR1: return "SIGUSR1";
    default: return {};
  }
}

}  // namespace echelon
