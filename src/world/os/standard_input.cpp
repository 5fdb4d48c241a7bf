#include "world/os/standard_input.h"

#include <unistd.h>

#include <cerrno>

#include "world/os/disk.h"

namespace echelon {

std::vector<std::byte> read_standard_input(std::uint64_t limit) {
  std::vector<std::byte> bytes;
  std::size_t size = 0;
  for (;;) {
    bytes.resize(size + (1 << 16));
    const ssize_t got = ::read(STDIN_FILENO, bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DiskError("read", "standard input", errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size > limit) bad_input("standard input has more than {} MiB: put it into a file", limit >> 20);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace echelon
