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

MessageBuffer* MessagePool::take_used(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  MessageBuffer* const buffer = idle_[class_of(bytes)].pop();
  if (buffer) buffer->bytes = bytes;
  return buffer;
}

MessageBuffer& MessagePool::take(std::size_t bytes) {
  if (MessageBuffer* const used = take_used(bytes)) return *used;
  auto buffer = std::make_unique<MessageBuffer>();
  buffer->bytes = bytes;
  buffer->size_class = class_of(bytes);
  if (bytes > 0) {
    const std::size_t room = std::size_t{1} << buffer->size_class;
    buffer->memory.reset(static_cast<std::byte*>(::operator new[](room, MessageBuffer::alignment)));
  }
  const std::lock_guard lock(mutex_);
  return *all_.emplace_back(std::move(buffer));
}

void MessagePool::give_back(MessageBuffer& buffer) {
  const std::lock_guard lock(mutex_);
  idle_[buffer.size_class].push(buffer);
}

}  // namespace echelon
