#pragma once
// Memory for messages (world/mailbox/mailbox.h): a buffer carries one on its way out or in. Buffers go back to a pool
// by size, so a program that sends the same kinds of messages again and again allocates only until the pool holds as
// many as are under way at once. The pool is thread-safe and never waits; a buffer has one owner.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <vector>

#include "world/mailbox/mailbox.h"

namespace echelon {

// What a message's first message consists of.
struct WireHeader {
  enum What : std::uint32_t { message = 1, goodbye = 2, farewell = 3 };
  std::uint32_t what = message;
  std::uint32_t sequence = 0;  // of the message from this rank to that one
  std::uint16_t kind = 0, tag = 0;
  std::uint32_t key = 0;
  std::int64_t clock = 0;
  double number = 0;
  std::uint64_t second = 0;
  std::uint64_t bytes = 0;  // of the payload, which follows if there is one
};
static_assert(sizeof(WireHeader) == Mailbox::header_bytes);

struct MessageBuffer {
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, alignment); }
  };

  Rank from = 0;
  MessageHeader head;
  std::size_t bytes = 0;
  std::unique_ptr<std::byte[], Free> memory;  // not initialised: pages are taken when used
  std::size_t size_class = 0;
  WireHeader wire;
  Work header_sent, payload_sent;
  MessageBuffer* next = nullptr;

  std::span<std::byte> payload() const { return {memory.get(), bytes}; }
};

// A list through the buffers themselves.
class MessageQueue {
 public:
  MessageBuffer* front() const { return first_; }
  void push(MessageBuffer& buffer) {
    buffer.next = nullptr;
    (last_ ? last_->next : first_) = &buffer;
    last_ = &buffer;
  }
  MessageBuffer* pop() {
    MessageBuffer* const buffer = first_;
    if (!buffer) return nullptr;
    first_ = buffer->next;
    if (!first_) last_ = nullptr;
    return buffer;
  }

 private:
  MessageBuffer *first_ = nullptr, *last_ = nullptr;
};

class MessagePool {
 public:
  MessageBuffer* take_used(std::size_t bytes);  // null if none of that size lies idle
  MessageBuffer& take(std::size_t bytes);       // makes one if need be
  void give_back(MessageBuffer& buffer);

 private:
  std::mutex mutex_;
  std::array<MessageQueue, 65> idle_;  // by size class: room for 2^class bytes
  std::vector<std::unique_ptr<MessageBuffer>> all_;
};

}  // namespace echelon
