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
// Groups (Hogwild++): each has weights of its own, on which its members race. A token goes round, and the group i that
// has it mixes its weights with those of the next group j. With `change` = w_i - what it had after its last turn, and
// for c groups beta from beta^c + beta = 1 and lambda = 1 - beta^(c-1):
//   w_i = lambda w_j + (1 - lambda) w_i + (beta + lambda - 1) change       w_j = w_j + beta change       both at once
// So a change decays on its way round the ring, and groups that nobody changes any more become equal.
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

  // Before anybody uses that group; by one of its own ranks, so that its memory is near them.
  void start(int group, std::span<const float> weights);
  void read(int group, std::span<float> out) const;
  // Adds the change, counts it, and hands the token on if it is this group's turn. Returns how many updates of the
  // group there were before this one.
  std::uint64_t add(int group, std::span<const float> change);
  std::uint64_t updates(int group) const;

  // By one rank, while no other rank does anything: the token goes round until all groups are alike.
  void drain();

  int holder() const;                                // of the token
  std::uint64_t handed_on(int group) const;          // how often that group has handed it on
  std::span<std::byte> memory() { return memory_; }  // for checkpoints, after drain()

 private:
  std::span<float> weights(int group) const;
  std::span<float> handed(int group) const;  // its weights after its last turn; only the token's holder touches it
  std::atomic_ref<std::uint64_t> counter(std::size_t index) const;
  std::atomic_ref<std::uint64_t> updates_of(int group) const;
  void try_to_hand_on(int group);
  double hand_on(int from, int to);  // returns by how much a number differed at most

  std::span<std::byte> memory_;
  std::size_t floats_;
  int groups_;
  Add how_;
  std::uint64_t every_;
  float beta_, lambda_;
};

double token_decay(int groups);  // beta

}  // namespace echelon
