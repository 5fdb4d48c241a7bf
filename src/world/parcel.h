#pragma once
// Memory for letters (world/mail.h): a parcel carries one on its way out or in. Parcels go back to a pool by size, so a
// program that sends the same kinds of letters again and again allocates only until the pool holds as many as are under
// way at once. The pool is thread-safe and never waits; a parcel has one owner.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <vector>

#include "world/mail.h"

namespace echelon {

// What a letter's first message consists of.
struct LetterOnTheWire {
  enum What : std::uint32_t { letter = 1, goodbye = 2, farewell = 3 };
  std::uint32_t what = letter;
  std::uint32_t sequence = 0;  // of the letter from this rank to that one
  std::uint16_t kind = 0, box = 0;
  std::uint32_t key = 0;
  std::int64_t clock = 0;
  double number = 0;
  std::uint64_t second = 0;
  std::uint64_t bytes = 0;  // of the payload, which follows if there is one
};
static_assert(sizeof(LetterOnTheWire) == Mail::header_bytes);

struct Parcel {
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete[](memory, alignment); }
  };

  Rank from = 0;
  LetterHead head;
  std::size_t bytes = 0;
  std::unique_ptr<std::byte[], Free> memory;  // not initialised: pages are taken when used
  std::size_t size_class = 0;
  LetterOnTheWire wire;
  Work header_sent, payload_sent;
  Parcel* next = nullptr;

  std::span<std::byte> payload() const { return {memory.get(), bytes}; }
};

// A list through the parcels themselves.
class ParcelQueue {
 public:
  Parcel* front() const { return first_; }
  void push(Parcel& parcel) {
    parcel.next = nullptr;
    (last_ ? last_->next : first_) = &parcel;
    last_ = &parcel;
  }
  Parcel* pop() {
    Parcel* const parcel = first_;
    if (!parcel) return nullptr;
    first_ = parcel->next;
    if (!first_) last_ = nullptr;
    return parcel;
  }

 private:
  Parcel *first_ = nullptr, *last_ = nullptr;
};

class ParcelPool {
 public:
  Parcel* take_used(std::size_t bytes);  // null if none of that size lies idle
  Parcel& take(std::size_t bytes);       // makes one if need be
  void give_back(Parcel& parcel);

 private:
  std::mutex mutex_;
  std::array<ParcelQueue, 65> idle_;  // by size class: room for 2^class bytes
  std::vector<std::unique_ptr<Parcel>> all_;
};

}  // namespace echelon
