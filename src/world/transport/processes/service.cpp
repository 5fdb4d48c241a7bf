#include "world/transport/processes/service.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "world/os/signals.h"

namespace echelon {

ServiceProcess::ServiceProcess(const std::function<void()>& body) {
  std::fflush(nullptr);  // or it would be written twice
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) fail("cannot start a process (fork: {})", std::strerror(errno));
  if (process_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  for (const int signal : stop_signals) ::signal(signal, SIG_IGN);
  try {
    body();
  } catch (const std::exception& problem) {
    fmt::print(stderr, "{}\n", problem.what());
  }
  _exit(1);
}

ServiceProcess::~ServiceProcess() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

}  // namespace echelon
