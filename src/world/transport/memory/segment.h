#pragma once
// A piece of memory that the ranks of one machine share, and everything they need to talk in it: whether the world is
// whole, one block for each rank (wake_up, receipts, what it is doing), one ring for each ordered pair of ranks, and an
// arena of named regions. All zero pages cost nothing until they are used, so it may be far larger than the machine.
//
// Three ways to get one:
//   create(Reach::process, ...)   memory of this process, for ranks that are threads
//   create(Reach::machine, ...)   a memfd. Forked children inherit the mapping; any other process of the same user can
//   attach(path())                while a process that has the segment lives. Then addresses may differ: everything in
//                                 the segment refers to itself by offsets.
// A memfd has no name in /dev/shm or elsewhere and is gone with the last process that maps it.
//
// Thread-safe, also across processes. Throws Failure naming the system call, and BadInput if `attach` is shown
// something else.

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

// How the sender of a message that is not copied hears of it. Written by the receiver, taken back by the sender.
struct alignas(64) Receipt {
  enum State : std::uint32_t { waiting, reading, taken, send_pieces, withdrawn };
  std::atomic<std::uint32_t> state{waiting};
  std::uint32_t token = 0;  // with send_pieces: what the receiver calls the message
};

// What belongs to one rank.
struct RankBlock {
  static constexpr std::uint32_t receipt_count = 1024;

  alignas(64) WakeUp wake_up;                       // all waiting tasks of the rank sleep on it
  alignas(64) std::atomic<std::uint32_t> news{0};   // one more for each receipt written and each full ring made free
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
