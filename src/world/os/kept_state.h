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
    EpochSums epoch = {};
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
  std::int64_t step() const;                          // of the newest whole state; 0 if there is none
  std::uint64_t version() const { return newest(); }  // another one for each whole state; 0: there is none

  // The most steps that were ever done, kept or not; told by the ranks.
  void count_step(std::int64_t step);
  std::int64_t furthest() const;

  // The run's folder, told by rank 0 once it is there; empty before that.
  void set_folder(std::string_view path);
  std::string folder() const;
  // How many workers shall go on, told by the ranks before they end; 0: nobody has asked. `same_workers`: as many as
  // there are, of other nodes perhaps.
  static constexpr int same_workers = -1;
  void ask_for_workers(int workers);
  int take_asked_workers();  // and forgets it
  // What else the launcher is asked for, told by rank 0 before that. Failure if it is longer than that.
  static constexpr std::size_t longest_wish = std::size_t{1} << 20;
  void set_wish(std::string_view text);
  std::string take_wish();  // and forgets it

  // Seconds of a step, told by rank 0 when it hands over; 0: it has done none.
  void set_pace(double seconds);
  double pace() const;

  // Told by the launcher: the ranks are to end after a step, and hand over.
  void want_change(bool wanted);
  bool change_wanted() const;
  // Told by the launcher: after this time (of the machine's steady clock) the ranks do no step. For ever, if it says
  // nothing.
  void set_valid_until(double time);
  double valid_until() const;
  // Told by a rank that has ended for that reason; and forgotten by begin().
  void set_outdated();
  bool outdated() const;

  // One part of the next state; all parts are given the same things. Allocates nothing. Skipped where it would destroy
  // the newest whole state, because another rank is that far behind. Failure if it is larger than `most_bytes`.
  void write(int part, const Position& position, std::string_view text, std::span<const StateSpan> tensors);

  // By a rank that writes no part of the next state: so that all ranks of this launcher count alike.
  void pass() { ++next_; }
  std::uint64_t last_number() const { return next_ - 1; }  // of the state that was written or passed last

  // What a rank notes for the one that takes its place, the `place`-th of this launcher: zeros at first.
  static constexpr std::size_t note_bytes = std::size_t{12} << 20;
  std::span<std::byte> notes(int place) const;

  // Of the newest whole state; Failure if there is none.
  Position read_position(std::string& text) const;
  // Into places of the same sizes as it was written from; Failure if they are not.
  void read(std::span<const StateSpan> tensors) const;
  std::size_t bytes() const;                       // of all tensors
  void read_end(std::span<std::byte> last) const;  // the last bytes of the tensors

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
