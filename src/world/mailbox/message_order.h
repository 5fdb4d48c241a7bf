#pragma once
// In which order the tasks of a rank took their messages: all that a recipe does not say about ranks that go at their
// own pace. It lies in memory that outlives the rank (world/os/kept_state.h). Where a state was kept, the place is
// marked. When ranks begin again with that state, each goes back to its mark, and its mailbox hands out what was taken
// since then once more in the same order, while the others send it again: every rank comes to the bits that it had.
// After the last message that was noted it takes whatever comes, and notes that.
//
// A channel is a tag of the mailbox, or one of the two further ones. Each is used by one task; mark() and rewind() are
// called while none of them takes anything. Allocates nothing.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace echelon {

class MessageOrder {
 public:
  static constexpr int stop_channel = 8, busy_channel = 9, channels = 10;  // 0 to 7: the tags of a Mailbox
  static constexpr std::size_t most_events = std::size_t{1} << 16;         // of a channel, since a mark
  static std::size_t bytes();                                              // of memory that it needs

  // What was taken. Every field is compared when it comes again.
  struct Event {
    std::uint32_t misses = 0;  // times that a task looked, and nothing was there, before this one
    std::uint16_t from = 0, has_payload = 0;
    std::uint32_t key = 0, hash = 0;
  };
  enum class Next { anything, nothing, this_one };

  // `memory`: zeros, or what another process has left there; aligned to 64 bytes. `who` names the rank and all that
  // must be the same for its notes to make sense.
  MessageOrder(std::span<std::byte> memory, std::uint64_t who);

  // The state of that number was kept here.
  void mark(std::uint64_t number);
  // Goes back to that mark, and begins to repeat. False, and nothing is noted any more, if there is none of that number
  // or too much was noted since.
  bool rewind(std::uint64_t number);
  void forget();  // begins anew: nothing is repeated
  bool repeats() const;
  std::uint64_t noted() const;  // events of all channels since the mark to which it went back, at that time
  // Something else happened than what was noted: from now on anything may. The rest of the notes is dropped.
  void abandon() { abandoned_ = true; }
  bool abandoned() const { return abandoned_; }
  bool is_nearly_full() const;  // a new mark is due

  // What the task of this channel is to do next: anything; to find nothing (which counts as having looked); or to take
  // `event`, and then say so.
  Next next(int channel, Event& event, bool looks);
  void took(int channel, const Event& event);  // also what was repeated
  void missed(int channel);                    // only while anything may happen
  // A number that a rank learns from elsewhere, mostly 0: what it was, or `now`, which is noted.
  std::uint32_t learn(int channel, std::uint32_t now);

 private:
  struct Mark;
  struct Channel;
  struct Shared;
  struct Place {  // of this process
    std::atomic<std::uint64_t> at = 0, end = 0;
    std::atomic<std::uint32_t> misses = 0, end_misses = 0;
  };
  void settle(int channel);

  Shared& shared_;
  const std::uint64_t who_;
  std::array<Place, channels> places_;
  std::atomic<bool> abandoned_ = false;
  std::uint64_t noted_ = 0;
  std::atomic<std::uint64_t> marked_[channels] = {};  // where the newest mark is
};

}  // namespace echelon
