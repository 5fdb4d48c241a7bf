#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "world/os/signals.h"
#include "world/os/wake_up.h"
#include "world/transport/processes/children.h"

namespace echelon {

namespace {

constexpr int exit_ended = 0, exit_failed = 1;

// Blocks the signals that are to be passed on and makes them readable from a descriptor. The destructor unblocks them.
class CaughtSignals {
 public:
  CaughtSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : stop_signals)
      if (!is_ignored(signal)) sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, &before_);
    descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor_ < 0) {
      const int reason = errno;
      pthread_sigmask(SIG_SETMASK, &before_, nullptr);
      fail("cannot watch for signals (signalfd: {})", std::strerror(reason));
    }
  }
  ~CaughtSignals() {
    close(descriptor_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  CaughtSignals(const CaughtSignals&) = delete;

  int descriptor() const { return descriptor_; }
  const sigset_t& before() const { return before_; }
  // The next signal; 0 if there is none.
  int next() const {
    signalfd_siginfo info{};
    return read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t before_{};
  int descriptor_ = -1;
};

struct RankProcess {
  pid_t pid = 0;
  int descriptor = -1;      // readable once it has ended; -1 once that was seen
  bool ended_here = false;  // by a signal of the launcher's own
};

// What a rank's process does, from fork to exit. The parent's objects are neither destroyed nor flushed here.
[[noreturn]] void live(Segment& segment, int index, pid_t parent, const sigset_t* signals,
                       const std::function<void(int)>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(exit_failed);  // it died before the call above
  leave_second_signal_to_launcher();
  if (signals) pthread_sigmask(SIG_SETMASK, signals, nullptr);  // otherwise they wait for StopSignals
  body(index);
  std::fflush(nullptr);
  _exit(segment.failure().known() ? exit_failed : exit_ended);
}

class ChildProcesses {
 public:
  ChildProcesses(Segment& segment, const ChildOptions& options) : segment_(segment), options_(options) {}
  ~ChildProcesses() {
    for (RankProcess& child : children_)
      if (child.descriptor >= 0) end(child);
  }
  ChildProcesses(const ChildProcesses&) = delete;

  void start(const CaughtSignals& signals, const std::function<void(int)>& body) {
    std::fflush(nullptr);  // or every rank would write it out again
    const pid_t parent = getpid();
    for (int index = 0; index < segment_.ranks(); ++index) {
      const pid_t pid = fork();
      if (pid == 0) live(segment_, index, parent, options_.hears_signals ? nullptr : &signals.before(), body);
      if (pid < 0) fail("cannot start rank {} (fork: {})", name(index), std::strerror(errno));
      children_.push_back({pid, static_cast<int>(syscall(SYS_pidfd_open, pid, 0))});
      if (children_.back().descriptor < 0) {
        const int reason = errno;
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
        fail("cannot watch rank {} (pidfd_open: {})", name(index), std::strerror(reason));
      }
    }
  }

  // Until all have ended. After a failure the others have some seconds to end by themselves.
  void watch(const CaughtSignals& signals) {
    double broken_since = -1;
    std::vector<pollfd> looks;
    while (std::any_of(children_.begin(), children_.end(), [](const RankProcess& c) { return c.descriptor >= 0; })) {
      looks.clear();
      for (const RankProcess& child : children_)
        looks.push_back({child.descriptor, POLLIN, 0});  // a negative one is skipped
      looks.push_back({signals.descriptor(), POLLIN, 0});
      poll(looks.data(), looks.size(), 100);

      while (const int signal = signals.next()) pass_on(signal);
      for (std::size_t i = 0; i < children_.size(); ++i)
        if (looks[i].revents != 0) bury(static_cast<int>(i));

      if (options_.go_on && !options_.go_on())
        for (RankProcess& child : children_)
          if (child.descriptor >= 0) child.ended_here = true, kill(child.pid, SIGKILL);
      if (!segment_.failure().known()) continue;
      const double now = monotonic_seconds();
      if (broken_since < 0) broken_since = now;
      if (now - broken_since > options_.grace_seconds)
        for (RankProcess& child : children_)
          if (child.descriptor >= 0) child.ended_here = true, kill(child.pid, SIGKILL);
    }
  }

 private:
  int name(int index) const { return options_.first_rank + index; }

  // The first signal is a request that the ranks fulfil. A signal to the whole group reaches them as well, so only here
  // one can tell whether another signal is a second request: then all end at once.
  void pass_on(int signal) {
    const double now = monotonic_seconds();
    const bool first = asked_since_ < 0;
    if (first) asked_since_ = now;
    if (now - asked_since_ > same_request_seconds) {
      for (RankProcess& child : children_)
        if (child.descriptor >= 0) end(child);
      _exit(128 + signal);
    }
    if (first && options_.on_signal) kept_from_ranks_ = options_.on_signal(signal);
    if (kept_from_ranks_) return;
    for (const RankProcess& child : children_)
      if (child.descriptor >= 0) kill(child.pid, signal);
  }

  void bury(int index) {
    RankProcess& child = children_[static_cast<std::size_t>(index)];
    int status = 0;
    waitpid(child.pid, &status, 0);
    close(child.descriptor);
    child.descriptor = -1;
    if (WIFSIGNALED(status) && !child.ended_here && options_.on_death) options_.on_death(name(index), WTERMSIG(status));
    const bool ended = segment_.rank(index).ended.load(std::memory_order_acquire) != 0;
    if (WIFSIGNALED(status))
      segment_.fail_world(name(index), fmt::format("killed by signal {}", WTERMSIG(status)), FailureKind::failure,
                          true);
    else if (!ended)
      segment_.fail_world(name(index), fmt::format("exited with code {} before its program's end", WEXITSTATUS(status)),
                          FailureKind::failure, true);
  }

  static void end(RankProcess& child) {
    kill(child.pid, SIGKILL);
    waitpid(child.pid, nullptr, 0);
    close(child.descriptor);
    child.descriptor = -1;
  }

  Segment& segment_;
  const ChildOptions options_;
  std::vector<RankProcess> children_;
  double asked_since_ = -1;  // when the first signal came
  bool kept_from_ranks_ = false;
};

}  // namespace

void run_children(Segment& segment, const ChildOptions& options, const std::function<void(int)>& body) {
  const CaughtSignals signals;
  ChildProcesses children(segment, options);
  children.start(signals, body);
  if (options.started) options.started();
  children.watch(signals);
}

}  // namespace echelon
