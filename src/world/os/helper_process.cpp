#include "world/os/helper_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "world/os/signals.h"

namespace echelon {

namespace {

constexpr int first_own_descriptor = 3;  // after standard input, output and error

// Other processes that hold a connection of this one open would hide its end from those at the other side.
void close_all_but(int kept) {
  if (kept > first_own_descriptor) close_range(first_own_descriptor, static_cast<unsigned>(kept) - 1, 0);
  close_range(static_cast<unsigned>(kept) + 1, ~0u, 0);
}

[[noreturn]] void live_as_helper(const char* name, pid_t parent, int descriptor,
                                 const std::function<void(ByteStream&)>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  prctl(PR_SET_NAME, name);
  for (const int signal : stop_signals) ::signal(signal, signal == SIGTERM ? SIG_DFL : SIG_IGN);
  close_all_but(descriptor);
  int code = 0;
  try {
    ByteStream stream(descriptor);
    body(stream);
  } catch (const std::exception& problem) {
    fmt::print(stderr, "{}\n", problem.what());
    code = 1;
  }
  _exit(code);
}

}  // namespace

ByteStream::~ByteStream() { close(descriptor_); }

bool ByteStream::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

bool ByteStream::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

void ByteStream::shut() { shutdown(descriptor_, SHUT_RDWR); }

HelperProcess::HelperProcess(const char* name, const std::function<void(ByteStream&)>& body) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    fail("cannot join a process (socketpair: {})", std::strerror(errno));
  std::fflush(nullptr);  // or it would be written twice
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) live_as_helper(name, parent, ends[1], body);
  const int reason = errno;
  close(ends[1]);
  stream_ = std::make_unique<ByteStream>(ends[0]);
  if (process_ < 0) fail("cannot start a process (fork: {})", std::strerror(reason));
}

HelperProcess::~HelperProcess() {
  if (over_) return;
  kill(process_, SIGKILL);
  end();
}

std::string HelperProcess::end() {
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  over_ = true;
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("has ended with exit code {}", WEXITSTATUS(status));
}

void kill_this_process() {
  for (;;) kill(getpid(), SIGKILL);
}

}  // namespace echelon
