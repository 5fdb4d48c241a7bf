#pragma once
// The newest state of a training, in memory that outlives its ranks. The launcher makes it before it starts them; when
// one is lost, others begin with what it holds.
//
// There are two slots. The ranks write each state into them by turns, every rank its part of the bytes. A slot is whole
// once all its parts are of the same state, and the newest whole slot is never written over: a rank may die at any
// instruction, and a state without tears is left.
//
// Made before the ranks are forked, which inherit it. Thread-safe, also across processes, where every part has one
// writer.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/state.h"

namespace echelon {

// Over the terms of the epoch so far.
struct EpochSums {
  double loss = 0, correct = 0, terms = 0;
};

class KeptState {
 public:
  static constexpr int most_parts = 1024;
  static constexpr std::size_t most_text_bytes = std::size_t{1} << 16;

  // What is kept besides the bytes of tensors and a text: what changes with every step.
  struct Position {
    std::int64_t step = 0;  // done
    EpochSums epoch;
    bool evaluation_due = false;
  };

  // `most_bytes`: of one state; pages are taken when used.
  explicit KeptState(std::size_t most_bytes = std::size_t{1} << 36);
  ~KeptState();
  KeptState(const KeptState&) = delete;
  KeptState& operator=(const KeptState&) = delete;

  // The launcher's, while no rank lives: the states that follow have so many parts.
  void begin(int parts);
  int parts() const;
  bool has_state() const;
  std::int64_t step() const;  // of the newest whole state; 0 if there is none

  // The run's folder, told by rank 0 once it is there; empty before that.
  void set_folder(std::string_view path);
  std::string folder() const;
  // How many workers shall go on, told by rank 0 before all ranks end; 0: nobody has asked.
  void ask_for_workers(int workers);
  int take_asked_workers();  // and forgets it

  // One part of the next state; all parts are given the same things. Allocates nothing. Skipped where it would destroy
  // the newest whole state, because another rank is that far behind. Failure if it is larger than `most_bytes`.
  void write(int part, const Position& position, std::string_view text, std::span<const StateSpan> tensors);

  // Of the newest whole state; Failure if there is none.
  Position read_position(std::string& text) const;
  // Into places of the same sizes as it was written from; Failure if they are not.
  void read(std::span<const StateSpan> tensors) const;

 private:
  struct Header;
  struct Slot;
  std::uint64_t newest() const;  // number of the newest whole state; 0: there is none
  Slot& slot(std::uint64_t number) const;
  std::byte* bytes(std::uint64_t number) const;

  std::size_t most_bytes_;
  std::size_t mapped_ = 0;
  std::byte* base_ = nullptr;
  std::uint64_t next_ = 1;  // of this rank: the number of the state that it writes next
};

}  // namespace echelon
