#include "world/os/signals.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>

namespace echelon {

namespace {

// A signal handler can reach nothing but globals; these are the only ones, and only this file sees them.
std::atomic<bool> stop_wanted{false};
std::atomic<int> first_signal{0};
std::atomic<double> first_time{0};
std::atomic<bool> launcher_counts{false};
std::array<struct sigaction, stop_signals.size()> before;

double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);  // a handler may call it
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void on_signal(int signal) {
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal)) {
    first_time = seconds_now();
    stop_wanted = true;
  } else if (!launcher_counts && stop_wanted && seconds_now() - first_time > same_request_seconds) {
    _exit(128 + signal);
  }
}

}  // namespace

bool is_ignored(int signal) {
  struct sigaction now {};
  return signal == SIGHUP && sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

StopSignals::StopSignals() {
  stop_wanted = false;
  first_signal = 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigset_t set;
  sigemptyset(&set);
  for (std::size_t i = 0; i < stop_signals.size(); ++i) {
    sigaction(stop_signals[i], nullptr, &before[i]);
    if (!is_ignored(stop_signals[i])) sigaction(stop_signals[i], &action, nullptr);
    sigaddset(&set, stop_signals[i]);
  }
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

StopSignals::~StopSignals() {
  if (launcher_counts) return;
  for (std::size_t i = 0; i < stop_signals.size(); ++i) sigaction(stop_signals[i], &before[i], nullptr);
}

const std::atomic<bool>& StopSignals::flag() const { return stop_wanted; }

std::string StopSignals::name() const {
  switch (first_signal.load()) {
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    case SIGUSR1: return "SIGUSR1";
    case SIGHUP: return "SIGHUP";
    default: return {};
  }
}

void leave_second_signal_to_launcher() { launcher_counts = true; }

}  // namespace echelon
