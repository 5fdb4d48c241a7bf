#include "world/tcp/children.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "world/clock.h"
#include "world/failure.h"

namespace echelon::tcp {

namespace {

struct Child {
  pid_t pid = -1;
  int report = -1;  // the reading end of its pipe: one letter for the kind of failure, then its text
  std::string text;
};

struct First {
  int rank;
  char kind;  // b: BadInput, l: it only heard of another's failure (rank, reason), f: another failure, k: killed
  std::string text;
};

[[noreturn]] void be_child(int report, const std::function<void()>& body) {
  std::string failure;
  try {
    body();
  } catch (const BadInput& e) {
    failure = std::string("b") + e.what();
  } catch (const PeerLost& e) {
    failure = fmt::format("l{} {}", e.rank(), e.reason());
  } catch (const std::exception& e) {
    failure = std::string("f") + e.what();
  }
  std::fflush(nullptr);
  if (failure.empty()) ::_exit(0);
  [[maybe_unused]] const auto n = ::write(report, failure.data(), std::min<std::size_t>(failure.size(), 4000));
  ::_exit(failure[0] == 'b' ? 2 : 1);
}

}  // namespace

void run_children(int count, int first_rank, const std::function<void(int)>& body, double grace_seconds) {
  const auto clock = make_real_clock();
  sigset_t ours, before;
  sigemptyset(&ours);
  for (const int s : {SIGCHLD, SIGTERM, SIGINT}) sigaddset(&ours, s);
  sigprocmask(SIG_BLOCK, &ours, &before);
  const int signals = ::signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  std::vector<Child> children(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail("no pipe for a rank");
    const pid_t pid = ::fork();
    if (pid < 0) fail("a rank cannot be started");
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      ::close(ends[0]);
      ::close(signals);
      sigprocmask(SIG_SETMASK, &before, nullptr);
      be_child(ends[1], [&] { body(i); });
    }
    ::close(ends[1]);
    children[static_cast<std::size_t>(i)] = {pid, ends[0], {}};
  }
  std::optional<First> first;
  double kill_at = 0;
  for (int alive = count; alive > 0;) {
    pollfd wait = {signals, POLLIN, 0};
    ::poll(&wait, 1, 100);
    signalfd_siginfo info;
    while (::read(signals, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGCHLD) continue;
      for (const Child& c : children) {
        if (c.pid > 0) ::kill(c.pid, static_cast<int>(info.ssi_signo));
      }
    }
    for (int i = 0; i < count; ++i) {
      Child& c = children[static_cast<std::size_t>(i)];
      int status = 0;
      if (c.pid <= 0 || ::waitpid(c.pid, &status, WNOHANG) != c.pid) continue;
      c.pid = -1;
      --alive;
      char text[4096];
      const ssize_t n = ::read(c.report, text, sizeof text);
      if (n > 0) c.text.assign(text, static_cast<std::size_t>(n));
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
      const char kind = WIFSIGNALED(status) ? 'k' : c.text.empty() ? 'f' : c.text[0];
      // Who only heard of a failure does not explain it; his end may be seen before that of the one who had it.
      if (!first || (first->kind == 'l' && kind != 'l')) {
        first = First{first_rank + i, kind,
                      kind == 'k'      ? "killed by signal " + std::to_string(WTERMSIG(status))
                      : c.text.empty() ? "ended with code " + std::to_string(WEXITSTATUS(status))
                                       : c.text.substr(1)};
      }
      if (kill_at == 0) kill_at = clock->seconds() + grace_seconds;
    }
    if (kill_at > 0 && clock->seconds() > kill_at) {
      for (const Child& c : children) {
        if (c.pid > 0) ::kill(c.pid, SIGKILL);
      }
    }
  }
  for (const Child& c : children) ::close(c.report);
  ::close(signals);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (!first) return;
  if (first->kind == 'b') throw BadInput(first->text);
  if (first->kind == 'l') {  // the one who had it is on another machine, or gave up without a word of its own
    const auto space = first->text.find(' ');
    throw RankFailed(std::atoi(first->text.c_str()), first->text.substr(space + 1));
  }
  throw RankFailed(first->rank, first->text);
}

}  // namespace echelon::tcp
