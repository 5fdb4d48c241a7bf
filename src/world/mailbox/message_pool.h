#pragma once
// Buffers for messages (world/mailbox/mailbox.h), those that leave and those that arrive. They are pooled by size, so a
// program that posts the same kinds of messages again and again allocates only until the pool holds as many as are on
// their way at once. The pool is thread-safe and never waits; a buffer has one owner.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>

#include "world/intrusive_list.h"
#include "world/mailbox/mailbox.h"
#include "world/pool.h"

namespace echelon {

// The first transfer of a message.
struct WireHeader {
  enum What : std::uint32_t { message = 1, goodbye = 2, farewell = 3 };
  std::uint32_t what = message;
  std::uint32_t sequence = 0;  // of the message, among those from one rank to the other
  std::uint16_t kind = 0, tag = 0;
  std::uint32_t key = 0;
  std::int64_t clock = 0;
  double number = 0;
  std::uint64_t second = 0;
  std::uint64_t bytes = 0;  // of the payload, which is the second transfer if there is one
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
  std::unique_ptr<std::byte[], Free> memory;  // not initialised
  std::size_t size_class = 0;
  WireHeader wire;
  Work header_sent, payload_sent;
  MessageBuffer *next = nullptr, *previous = nullptr;  // in a MessageQueue

  std::span<std::byte> payload() const { return {memory.get(), bytes}; }
};

using MessageQueue = IntrusiveList<MessageBuffer>;

class MessagePool {
 public:
  MessageBuffer* take_idle(std::size_t bytes);  // null if none of that size is idle
  MessageBuffer& take(std::size_t bytes);       // makes one if there is none
  void give_back(MessageBuffer& buffer);

 private:
  std::mutex mutex_;
  std::array<Pool<MessageBuffer>, 65> pools_;  // by size class: room for 2^class bytes; class 0: none
};

}  // namespace echelon
