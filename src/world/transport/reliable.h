#pragma once
// Exactly once and in order, over a link that may drop, duplicate, reorder, delay and corrupt frames. One object is one
// end of a link between two ranks: a state machine without I/O, threads or a clock of its own. Give it messages to
// send, whatever comes off the wire, and the time; it gives back frames to put on the wire, messages to deliver, and
// when it wants to be woken.
//
//   link.send(message, now);            // or link.arrived(bytes, now), or link.tick(now) at link.wake()
//   while (link.next_frame(frame)) ...  // put it on the wire
//   while (link.next_message(message)) ...  // in the order in which the other end sent them, each once
//
// How: data frames are numbered from 0. The receiver holds frames that came too early, delivers without gaps, and
// answers each data frame with the number that it wants next (a cumulative acknowledgement, which data frames carry
// too). The sender repeats a frame that is not acknowledged in time; the time is learned from the round trips (Jacobson
// and Karels 1988, with Karn's rule) and doubles with each try; after `most_tries` the peer is lost. What is corrupt, a
// duplicate, too far ahead or of another epoch is dropped and counted.
//
// Memory is bounded by `window` frames at the receiver; the sender keeps all that is not acknowledged. Throws nothing.
// Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "world/planted_bugs.h"
#include "world/transport/frame.h"

namespace echelon {

struct ReliableOptions {
  double first_timeout = 0.05;  // seconds, until a round trip has been seen
  double least_timeout = 0.0005;
  double longest_timeout = 2;
  double seconds_per_byte = 0;                        // of the wire: added to the timeout for all that is on its way
  int most_tries = 16;                                // of one frame; then the peer is lost
  std::uint64_t window = 64;                          // frames on their way at once
  std::uint64_t most_bytes = std::uint64_t{1} << 32;  // in a message
};

struct WireMessage {
  std::uint32_t channel = 0;
  Label label = {};
  std::vector<std::byte> bytes;
};

struct ReliableCounts {
  std::uint64_t sent = 0, resent = 0, acks = 0, delivered = 0;
  std::uint64_t corrupt = 0, duplicate = 0, strange = 0, too_early = 0;  // dropped
};

class ReliableLink {
 public:
  struct Ends {
    std::uint32_t me = 0, peer = 0, epoch = 0;
  };

  ReliableLink(Ends ends, const ReliableOptions& options, const PlantedBugs& bugs = {});

  void send(WireMessage message, double now);
  void arrived(std::span<const std::byte> frame, double now);
  void tick(double now);  // what is due at this time is sent again

  bool next_frame(std::vector<std::byte>& frame);  // false: none
  bool next_message(WireMessage& message);         // false: none
  double wake() const;                             // infinity: not at all

  bool lost() const { return lost_; }  // gave up on the peer; nothing is sent any more
  bool idle() const { return unacknowledged_.empty() && queue_.empty(); }
  const ReliableCounts& counts() const { return counts_; }

 private:
  struct Outgoing {
    std::uint64_t sequence = 0;
    WireMessage message;
    double sent_at = 0, due = 0;
    int tries = 0;
  };

  void fill_window(double now);
  void transmit(Outgoing& out, double now);
  void acknowledge(std::uint64_t upto, double now);
  void measure(double round_trip);
  void accept(const FrameHeader& header, std::span<const std::byte> payload);
  void deliver(WireMessage message);
  void queue_ack();
  void queue_frame(FrameHeader header, std::span<const std::byte> payload);
  double timeout(int tries) const;

  Ends ends_;
  ReliableOptions options_;
  PlantedBugs bugs_;
  ReliableCounts counts_;

  std::deque<WireMessage> queue_;        // waits for room in the window
  std::deque<Outgoing> unacknowledged_;  // in order of their numbers
  std::uint64_t next_sequence_ = 0;
  std::uint64_t bytes_on_the_way_ = 0;
  double round_trip_ = 0, deviation_ = 0;  // 0: none seen yet
  bool lost_ = false;

  std::uint64_t expected_ = 0;                      // the next number to deliver
  std::map<std::uint64_t, WireMessage> too_early_;  // arrived before `expected_`
  std::uint64_t highest_seen_ = 0;

  std::deque<std::vector<std::byte>> frames_;
  std::deque<WireMessage> messages_;
};

}  // namespace echelon
