#include "world/os/host.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

namespace echelon {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == 0) return "localhost";
  return name.data();
}

std::size_t peak_resident_bytes() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

std::size_t usable_memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  std::size_t bytes = std::numeric_limits<std::size_t>::max();
  if (pages > 0 && page > 0) bytes = static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::size_t limit = 0;
    if (std::ifstream(file) >> limit && limit > 0) bytes = std::min(bytes, limit);  // "max" is no number
  }
  for (const auto kind : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (::getrlimit(kind, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      bytes = std::min<std::size_t>(bytes, limit.rlim_cur);
  }
  return bytes;
}

int process_id() { return ::getpid(); }

bool process_exists(std::int64_t id) { return ::kill(static_cast<pid_t>(id), 0) == 0 || errno != ESRCH; }

std::string program_directory() {
  std::error_code unknown;
  const auto file = std::filesystem::read_symlink("/proc/self/exe", unknown);
  // Where this code is part of a module that another program has loaded (a Python package), its own program lies in the
  // folder "bin" beside the module.
  Dl_info module{};
  if (::dladdr(reinterpret_cast<const void*>(&host_name), &module) != 0 && module.dli_fname) {
    const std::filesystem::path own = std::filesystem::weakly_canonical(module.dli_fname, unknown);
    if (own.filename().string().find(".so") != std::string::npos) return (own.parent_path() / "bin").string();
  }
  return unknown ? "." : file.parent_path().string();
}

std::string environment(const std::string& variable) {
  const char* const value = std::getenv(variable.c_str());
  return value ? value : "";
}

bool is_terminal(int file_descriptor) { return ::isatty(file_descriptor) == 1; }

int terminal_columns(int file_descriptor) {
  winsize size{};
  if (::ioctl(file_descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace echelon
