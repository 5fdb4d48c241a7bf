#pragma once
// The last events of a rank, in a file that it has mapped: what it did, with whom, when, and where its time went so
// far. Whoever reads the file sees them while the rank lives and after it was killed, at whatever instruction.
//
// Recording takes tens of nanoseconds, allocates nothing and never fails: without room on the disk the events lie in
// memory of the process alone. Any task of the rank may record.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "world/label.h"

namespace echelon {

struct RingTimes {  // seconds so far in the steps of a rank
  double input = 0, compute = 0, exchange = 0, waiting = 0;
};

// What a ring says, read at one moment.
struct RingView {
  struct Event {
    double time = 0;  // since 1970
    std::int64_t step = 0;
    int peer = -1;
    std::string what;  // "backward of conv2", "send all-reduce 7, step 2"
  };
  int rank = 0, ranks = 1, process = 0;
  std::uint64_t process_began = 0;  // as the system counts it: another process may get the same number
  std::string host = {};
  double began = 0, stepped = 0;  // since 1970: when the ring was made; when the last step was done
  std::int64_t step = 0;          // done, as far as the rank knows: workers at their own pace do not
  std::uint64_t batches = 0;      // begun
  RingTimes times = {};
  std::string activity = {};       // what it does
  double since = 0;                // when it began to
  int waiting_for = -1;            // the rank that keeps it waiting
  double saving_since = 0;         // a checkpoint is being written since then; 0: none is
  std::string ended = {};          // why the rank has ended by itself; empty: it has not
  std::vector<Event> events = {};  // the oldest first
};

class EventRing {
 public:
  static constexpr std::size_t most_events = 64, text_bytes = 64;

  static constexpr std::string_view reading = "reading the batch";  // the activity with which a step begins

  // Makes the file, or begins it again. `path` empty: in memory.
  EventRing(const std::string& path, int rank, int ranks);
  ~EventRing();
  EventRing(const EventRing&) = delete;

  void set_activity(std::string_view what);
  void message(bool sends, const Label& label, int peer, std::size_t bytes);
  void set_waiting_for(int peer);
  void note(std::string_view what, int peer = -1);
  void end_step(std::int64_t step, const RingTimes& times);
  void set_saving(bool saving);
  void end(std::string_view why);

  // None if there is no such file, or if it is no ring.
  static std::optional<RingView> read(const std::string& path);
  static std::optional<RingView> parse(std::span<const std::byte> file);  // what a file has
  static const std::size_t file_bytes;
  // The rings in a folder (rank_N.ring) that are of the job that began last, by rank.
  static std::vector<RingView> read_all(const std::string& folder);

 private:
  struct Memory;
  template <typename Fill>
  void add(int peer, const Fill& fill);

  Memory* memory_ = nullptr;
};

}  // namespace echelon
