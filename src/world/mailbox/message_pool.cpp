#include "world/mailbox/message_pool.h"

#include <algorithm>
#include <bit>

namespace echelon {

namespace {

constexpr std::size_t smallest_class = 8;

std::size_t class_of(std::size_t bytes) {
  if (bytes == 0) return 0;
  return std::max(smallest_class, static_cast<std::size_t>(std::bit_width(bytes - 1)));
}

}  // namespace

MessageBuffer* MessagePool::take_idle(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  MessageBuffer* const buffer = pools_[class_of(bytes)].take_idle();
  if (buffer) buffer->bytes = bytes;
  return buffer;
}

MessageBuffer& MessagePool::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t size_class = class_of(bytes);
  MessageBuffer& buffer = pools_[size_class].take();
  buffer.bytes = bytes;
  if (bytes > 0 && !buffer.memory) {
    buffer.size_class = size_class;
    buffer.memory.reset(
        static_cast<std::byte*>(::operator new[](std::size_t{1} << size_class, MessageBuffer::alignment)));
  }
  return buffer;
}

void MessagePool::give_back(MessageBuffer& buffer) {
  const std::lock_guard lock(mutex_);
  pools_[buffer.size_class].give_back(buffer);
}

}  // namespace echelon
