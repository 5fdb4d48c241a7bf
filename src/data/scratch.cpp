#include "data/scratch.h"

#include <utility>
#include <vector>

namespace echelon::data {

namespace {
// Returned leases of this thread, the last returned on top: nested scopes find the sizes they used before.
std::vector<Buffer>& pool() {
  thread_local std::vector<Buffer> buffers;
  return buffers;
}
}  // namespace

Scratch::Scratch(std::size_t bytes) {
  auto& free = pool();
  if (!free.empty()) {
    buffer_ = std::move(free.back());
    free.pop_back();
  }
  resize(bytes);
}

void Scratch::resize(std::size_t bytes) {
  if (buffer_.bytes() < bytes) buffer_ = Buffer(bytes);
  bytes_ = bytes;
}

Scratch::~Scratch() { pool().push_back(std::move(buffer_)); }

}  // namespace echelon::data
