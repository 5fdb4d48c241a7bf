#include "tensor/buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace echelon {

namespace {
constexpr std::size_t huge_page = 2u << 20;
}

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const bool large = bytes >= 4 * huge_page;
  const std::size_t unit = large ? huge_page : alignment, room = (bytes + unit - 1) / unit * unit;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(unit, room)));
  if (!data_) fail("out of memory: {} MiB were asked for", bytes >> 20);
  if (large) madvise(data_.get(), room, MADV_HUGEPAGE);
  std::memset(data_.get(), 0, bytes);
}

void Buffer::Free::operator()(std::byte* p) const { std::free(p); }

}  // namespace echelon
