#include "world/host.h"

#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>

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

bool is_terminal(int file_descriptor) { return ::isatty(file_descriptor) == 1; }

int terminal_columns(int file_descriptor) {
  winsize size{};
  if (::ioctl(file_descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace echelon
