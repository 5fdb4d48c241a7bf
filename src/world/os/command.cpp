#include "world/os/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/error.h"

extern char** environ;

namespace echelon {

namespace {

constexpr std::size_t output_limit = 64 << 10;

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) fail("cannot make a pipe: {}", std::strerror(errno));
  }
  ~Pipe() {
    ::close(ends_[0]);
    close_writer();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void close_writer() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{};
};

pid_t start(const Command& command, int output) {
  std::vector<char*> argv;
  for (const auto& a : command.argv) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawn_file_actions_addchdir_np(&actions, command.directory.c_str());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (command.stop) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // a group of its own
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) fail("cannot run '{}': no such program on this machine (install it, or check PATH)", argv[0]);
  if (error != 0) fail("cannot run '{}' in {}: {}", argv[0], command.directory, std::strerror(error));
  return child;
}

// A started program; killed if it is left before its end was awaited.
class Child {
 public:
  explicit Child(pid_t id) : id_(id) {}
  ~Child() {
    if (id_ == 0) return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void ask_to_end() {
    if (!asked_) ::kill(id_, SIGTERM);
    asked_ = true;
  }

  int wait() {
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0)
      if (errno != EINTR) fail("cannot wait for process {}: {}", id_, std::strerror(errno));
    id_ = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t id_;
  bool asked_ = false;
};

}  // namespace

CommandResult run_command(const Command& command) {
  invariant(!command.argv.empty(), "a command has a name");
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(command.limit_seconds);
  Pipe pipe;
  Child child(start(command, pipe.writer()));
  pipe.close_writer();
  CommandResult result;
  std::array<char, 4096> piece;
  for (;;) {
    if (Clock::now() > deadline)
      fail("'{}' was stopped: not finished after {:.0f} s. It said: {}", command.argv[0], command.limit_seconds,
           result.output.empty() ? "nothing" : result.output);
    pollfd waiting{pipe.reader(), POLLIN, 0};
    const int ready = ::poll(&waiting, 1, 100);
    if (command.tick) command.tick();
    if (command.stop && *command.stop) child.ask_to_end();
    if (ready <= 0) continue;
    const ssize_t n = ::read(pipe.reader(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;  // every writer has closed: the program has ended, or is about to
    result.output.append(piece.data(), static_cast<std::size_t>(n));
    if (result.output.size() > 2 * output_limit) result.output.erase(0, result.output.size() - output_limit);
  }
  result.exit_code = child.wait();
  if (result.output.size() > output_limit) result.output.erase(0, result.output.size() - output_limit);
  return result;
}

}  // namespace echelon
