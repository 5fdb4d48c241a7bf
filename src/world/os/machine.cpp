#include "world/os/machine.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "world/os/cores.h"
#include "world/os/host.h"

namespace echelon {

namespace {

// The text behind "KEY :" in a file of lines; empty if there is none.
std::string value_in(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

// The word in brackets of "always [madvise] never".
std::string chosen_in(const char* file) {
  std::string text;
  std::getline(std::ifstream(file) >> std::ws, text);
  const std::size_t open = text.find('['), close = text.find(']');
  return open == std::string::npos || close == std::string::npos ? "" : text.substr(open + 1, close - open - 1);
}

double quota() {
  double used = 0, period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> used >> period && period > 0) return used / period;
  std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> used;
  std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  return used > 0 && period > 0 ? used / period : 0;
}

// A descriptor that is closed at the end.
struct Socket {
  explicit Socket(int descriptor) : fd(descriptor) {}
  ~Socket() {
    if (fd >= 0) ::close(fd);
  }
  Socket(const Socket&) = delete;
  int fd;
};

// One connection from this process to itself; a listening socket of the same host answers without a wait.
std::string try_loopback() {
  const auto problem = [](const char* what) { return std::string(what) + ": " + std::strerror(errno); };
  const Socket listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (listener.fd < 0) return problem("no socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.fd, any, length) != 0) return problem("127.0.0.1 cannot be bound");
  if (::listen(listener.fd, 1) != 0) return problem("nobody can listen at 127.0.0.1");
  if (::getsockname(listener.fd, any, &length) != 0) return problem("127.0.0.1 has no port");
  const Socket caller(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (caller.fd < 0) return problem("no socket");
  if (::connect(caller.fd, any, length) != 0 && errno != EINPROGRESS) return problem("127.0.0.1 does not answer");
  timeval most{.tv_sec = 2, .tv_usec = 0};
  ::setsockopt(listener.fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);  // of accept, too
  const Socket accepted(::accept(listener.fd, nullptr, nullptr));
  return accepted.fd < 0 ? problem("127.0.0.1 accepts no connection") : "";
}

}  // namespace

bool MachineFacts::has(const std::string& feature) const {
  return std::ranges::find(features, std::pair(feature, true)) != features.end();
}

std::vector<std::pair<std::string, bool>> cpu_features() {
  __builtin_cpu_init();
  return {{"sse4.2", __builtin_cpu_supports("sse4.2") != 0},
          {"avx", __builtin_cpu_supports("avx") != 0},
          {"avx2", __builtin_cpu_supports("avx2") != 0},
          {"fma", __builtin_cpu_supports("fma") != 0},
          {"avx512f", __builtin_cpu_supports("avx512f") != 0},
          {"avx512bw", __builtin_cpu_supports("avx512bw") != 0},
          {"avx512vnni", __builtin_cpu_supports("avx512vnni") != 0}};
}

MachineFacts look_at_machine() {
  MachineFacts m;
  m.cpu = value_in("/proc/cpuinfo", "model name");
  m.features = cpu_features();
  m.hardware_threads = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  m.usable_cores = available_cores();
  m.cpu_quota = quota();
  m.memory = usable_memory_bytes();
  m.memory_free = std::strtoull(value_in("/proc/meminfo", "MemAvailable").c_str(), nullptr, 10) * 1024;
  m.memory_free = std::min(m.memory_free, m.memory);
  m.huge_pages = chosen_in("/sys/kernel/mm/transparent_hugepage/enabled");
  struct statvfs shared {};
  if (::statvfs("/dev/shm", &shared) == 0) m.shared_memory_free = shared.f_bavail * shared.f_frsize;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) m.open_files = files.rlim_cur;
  m.loopback_problem = try_loopback();
  return m;
}

}  // namespace echelon
