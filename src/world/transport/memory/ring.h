#pragma once
// A ring buffer of records from one rank to another, in memory that both see. A record describes a message and may
// carry its bytes. One writer and one reader at a time; neither ever waits here.
//
//   RingMemory   what lies in the segment; all zero is an empty ring
//   RingWriter   the writer's view: reserve room, fill it, publish
//   RingReader   the reader's view: look at the first record, pop it

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "world/label.h"

namespace echelon {

struct Record {
  enum Kind : std::uint32_t {
    skip,       // padding up to the end of the ring
    small,      // a message with its bytes
    in_place,   // a message whose bytes the receiver can read where they are
    by_pieces,  // a message whose bytes follow in pieces when the receiver asks for them
    piece,      // such a piece
  };
  std::uint32_t size;  // of the record in the ring
  Kind kind;
  std::uint32_t channel;
  std::uint32_t token;  // in_place, by_pieces: the sender's receipt; piece: the receiver's operation
  Label label;
  std::uint64_t bytes;  // of the message; piece: of the piece
  std::uint64_t where;  // in_place: address or offset; piece: its place in the message
};

struct RingMemory {
  static constexpr std::size_t capacity = std::size_t{1} << 17;

  alignas(64) std::atomic<std::uint64_t> tail;     // bytes ever written
  alignas(64) std::atomic<std::uint64_t> head;     // bytes ever read
  std::atomic<std::uint64_t> small_taken;          // small messages that were matched with a receive
  alignas(64) std::atomic<std::uint32_t> starved;  // the writer found no room and is to be told when there is some
  alignas(64) std::byte data[capacity];
};

constexpr std::size_t largest_record = RingMemory::capacity / 4;

class RingWriter {
 public:
  explicit RingWriter(RingMemory& memory) : memory_(&memory) {}

  // Room for a record with that many bytes behind it, or null if the ring is full: then RingReader::publish returns
  // true when there is room.
  Record* reserve(std::size_t bytes);
  void publish();  // the record that was reserved, with the `kind` and so on filled in

  // Whether the receiver has room for one more unexpected small message.
  bool may_send_small();
  void small_was_sent() { ++small_sent_; }

 private:
  RingMemory* memory_;
  std::uint64_t tail_ = 0, head_seen_ = 0;
  std::uint64_t small_sent_ = 0, small_taken_seen_ = 0;
};

class RingReader {
 public:
  explicit RingReader(RingMemory& memory) : memory_(&memory) {}

  bool empty() const {  // any thread may ask
    return memory_->tail.load(std::memory_order_seq_cst) == head_.load(std::memory_order_relaxed);
  }
  const Record* front();  // null if there is none
  // Done with it. True if the writer is to be told that there is room.
  [[nodiscard]] bool pop();
  // Says how far we have read; pop() does so by itself only now and then.
  [[nodiscard]] bool publish();
  void small_was_taken() { memory_->small_taken.store(++small_taken_, std::memory_order_release); }

 private:
  RingMemory* memory_;
  std::atomic<std::uint64_t> head_{0};
  std::uint64_t published_ = 0, small_taken_ = 0;
};

inline std::byte* payload_of(Record* record) { return reinterpret_cast<std::byte*>(record + 1); }
inline const std::byte* payload_of(const Record* record) { return reinterpret_cast<const std::byte*>(record + 1); }

}  // namespace echelon
