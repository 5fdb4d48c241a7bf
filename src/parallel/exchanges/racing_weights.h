#pragma once
// Weights in memory that many ranks read and write at once, without a lock: what Hogwild races on. Every access to a
// number is a relaxed atomic one, so that racing is defined behaviour: a reader may see any mixture of old and new
// numbers, but never half a number. The price: the compiler does not vectorise these loops, about one number a cycle
// where a plain loop does eight.
//
//   Add::racing   load, add, store: an update that falls between another's load and store is lost (Hogwild as it is
//                 usually run)
//   Add::atomic   compare and exchange until it fits: nothing is lost, at several times the price where many write
//
// Numbers that do not change are not written: sparse updates collide seldom, and their cache lines stay where they
// are.
//
// Groups (Hogwild++): each has weights of its own, on which its members race. A token goes round: its holder hands its
// weights to the next group, which adds its own change since it has handed on its own:
//   next += holder - what next had handed on;   holder remembers what it has handed on
// So every change reaches every group once, and groups that are not changed any more become equal in one more round.
// (The paper mixes neighbours with decaying weights to the same end.)
//
// The memory is the caller's, zero-filled, the same for all ranks. All functions may be called by all ranks at once,
// except where said.

#include <atomic>
#include <cstdint>
#include <span>

namespace echelon {

class RacingWeights {
 public:
  enum class Add { racing, atomic };

  static std::size_t memory_bytes(std::size_t floats, int groups);
  // `every`: updates of a group before it hands the token on.
  RacingWeights(std::span<std::byte> memory, std::size_t floats, int groups, Add how, std::uint64_t every);

  void start(std::span<const float> weights);  // by one rank, before the others use it
  void read(int group, std::span<float> out) const;
  // Adds the change, counts it, and hands the token on if it is this group's turn. Returns how many updates of the
  // group there were before this one.
  std::uint64_t add(int group, std::span<const float> change);
  std::uint64_t updates(int group) const;

  // By one rank, while no other rank does anything: the token goes round until every group has every change.
  void drain();

  int holder() const;                                // of the token
  std::uint64_t handed_on(int group) const;          // how often that group has handed it on
  std::span<std::byte> memory() { return memory_; }  // for checkpoints, after drain()

 private:
  std::span<float> weights(int group) const;
  std::span<float> handed(int group) const;  // only the token's holder touches it
  std::atomic_ref<std::uint64_t> counter(std::size_t index) const;
  std::atomic_ref<std::uint64_t> updates_of(int group) const;
  void try_to_hand_on(int group);
  void hand_on(int from, int to);

  std::span<std::byte> memory_;
  std::size_t floats_;
  int groups_;
  Add how_;
  std::uint64_t every_;
};

}  // namespace echelon
