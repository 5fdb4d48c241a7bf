#include "world/os/host.h"

#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

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

int process_id() { return ::getpid(); }

std::string program_directory() {
  std::error_code unknown;
  const auto file = std::filesystem::read_symlink("/proc/self/exe", unknown);
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
