#pragma once
// The memory that the ranks of one machine share: the first failure, a block for each rank (wake-up, status, receipts),
// a ring for each ordered pair of ranks, and an arena of named regions. Pages cost nothing until they are used, so a
// segment may be far larger than the machine's memory.
//
// Three ways to get one:
//   create(Reach::process, ...)   memory of this process, for ranks that are threads
//   create(Reach::machine, ...)   a memfd. Forked children inherit the mapping
//   attach(path())                another process of the same user, while one that has the segment lives. Addresses may
//                                 then differ: everything in the segment refers to itself by offsets.
// A memfd has no name in /dev/shm or elsewhere and is freed with the last process that maps it.
//
// Thread-safe, also across processes. Throws Failure naming the system call, and BadInput if the path of `attach` is
// not a segment.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "world/os/wake_up.h"
#include "world/transport/first_failure.h"
#include "world/transport/memory/ring.h"
#include "world/transport/memory/shared_status.h"

namespace echelon {

// The receiver's answer to the announcement of a large message. It belongs to the sender, who may withdraw the message.
struct alignas(64) Receipt {
  enum State : std::uint32_t { waiting, reading, taken, send_pieces, withdrawn };
  std::atomic<std::uint32_t> state{waiting};
  std::uint32_t token = 0;  // with send_pieces: the receiver's number of its operation
};

// What the segment has for one rank.
struct RankBlock {
  static constexpr std::uint32_t receipt_count = 1024;

  alignas(64) WakeUp wake_up;  // the waiting tasks of the rank sleep on it
  alignas(64) std::atomic<std::uint32_t> changes{
      0};                                           // one more for each receipt, and when its full ring has room again
  alignas(64) std::atomic<std::uint32_t> ended{0};  // its program has returned
  SharedStatus status;
  std::array<Receipt, receipt_count> receipts;
};

class Segment {
 public:
  enum class Reach { process, machine };

  static std::unique_ptr<Segment> create(Reach reach, int ranks, std::size_t arena_bytes);
  static std::unique_ptr<Segment> attach(const std::string& path);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  Reach reach() const { return reach_; }
  std::string path() const;  // for `attach`: "/proc/PID/fd/N", good while this process lives. Only Reach::machine.
  int ranks() const;

  RankBlock& rank(int rank) const;
  RingMemory& ring(int from, int to) const;
  FirstFailure& failure() const;
  // Records a failure (FirstFailure::set) and, if it is the first, wakes everybody who waits.
  bool fail_world(int rank, std::string_view reason, FailureKind kind = FailureKind::failure,
                  bool writer_is_dead = false) const;

  // A region of the arena, made by whoever asks first; zero-filled, aligned to a page (to 2 MiB if that large). Lives
  // as long as the segment. Mismatch if the name is known with another size; Failure if the arena is full.
  std::span<std::byte> region(std::string_view name, std::size_t bytes);

  bool contains(std::span<const std::byte> bytes) const;
  std::uint64_t offset_of(const std::byte* address) const { return static_cast<std::uint64_t>(address - base_); }
  std::byte* at(std::uint64_t offset) const { return base_ + offset; }

 private:
  struct Header;
  Segment(Reach reach, int descriptor, std::byte* base, std::size_t bytes)
      : reach_(reach), descriptor_(descriptor), base_(base), bytes_(bytes) {}
  Header& header() const;

  Reach reach_;
  int descriptor_;
  std::byte* base_;
  std::size_t bytes_;
};

}  // namespace echelon
