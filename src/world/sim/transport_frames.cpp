// The transport on a bad wire: messages become frames of the exactly-once stream, and the fault plan happens to each
// frame.

#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "world/sim/transport.h"

namespace echelon::sim {

namespace {

constexpr std::uint32_t this_epoch = 2, earlier_epoch = 1;

// The same numbers sent by an earlier incarnation, with other contents and right checksums.
std::vector<std::byte> from_the_past(const std::vector<std::byte>& frame, std::uint32_t noise) {
  FrameHeader header = decode_header(frame, {.payload_bytes = ~std::uint64_t{0}, .message_bytes = ~std::uint64_t{0}});
  std::vector<std::byte> payload(frame.begin() + frame_header_bytes, frame.end());
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] ^= static_cast<std::byte>((noise + i) | 1);
  header.epoch = earlier_epoch;
  seal(header, payload);
  const FrameHeaderBytes head = encode_header(header);
  payload.insert(payload.begin(), head.begin(), head.end());
  return payload;
}

}  // namespace

Transport::Line& Transport::line(int at, int peer) {
  Line& line = lines_[static_cast<std::size_t>(at)][peer];
  if (!line.link) {
    ReliableOptions options = options_.reliable;
    if (options.seconds_per_byte <= 0)
      options.seconds_per_byte = network_.seconds_per_byte(at, peer) + network_.seconds_per_byte(peer, at);
    const ReliableLink::Ends ends{static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(peer), this_epoch};
    line.link = std::make_unique<ReliableLink>(ends, options, options_.bugs);
  }
  return line;
}

// Everything that the line's state machine wants done.
void Transport::pump(int at, int peer) {
  Line& mine = line(at, peer);
  for (std::vector<std::byte> frame; mine.link->next_frame(frame);) put_on_wire(at, peer, std::move(frame));
  for (WireMessage message; mine.link->next_message(message);) {
    auto& senders = line(peer, at).senders;
    Handle sender;
    if (!senders.empty()) {
      sender = senders.front();
      senders.pop_front();
    }
    deliver({peer, at, message.channel, message.label, std::move(message.bytes), sender});
  }
  if (mine.link->lost()) {
    ranks_.lost(at, peer, fmt::format("no answer to {} tries", options_.reliable.most_tries));
    return;
  }
  const double wake = mine.link->wake();
  if (wake >= mine.timer) return;  // the timer that runs comes first and will look again
  mine.timer = wake;
  scheduler_.at(wake, at, What::timer, [this, at, peer, wake] {
    Line& mine = line(at, peer);
    if (mine.timer != wake) return;
    mine.timer = never;
    if (ranks_.gone(at)) return;
    mine.link->tick(scheduler_.now());
    pump(at, peer);
  });
}

bool Transport::cut(int from, int to) const {
  const auto has = [](const std::vector<int>& ranks, int rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  };
  for (const auto& p : options_.faults.partitions) {
    if (scheduler_.now() < p.begin || scheduler_.now() >= p.end) continue;
    if (has(p.one, from) && has(p.other, to)) return true;
    if (!p.one_way && has(p.other, from) && has(p.one, to)) return true;
  }
  return false;
}

void Transport::put_on_wire(int from, int to, std::vector<std::byte> frame) {
  const FaultPlan& faults = options_.faults;
  if (cut(from, to)) {
    ++report_.faults.cut;
    return;
  }
  if (scheduler_.now() < faults.begin || scheduler_.now() >= faults.end) return fly(from, to, std::move(frame), 0);
  // Sixteen numbers for each frame of each direction: what happens to one depends on nothing else.
  const Stream random(
      {options_.seed, static_cast<std::uint32_t>(to), static_cast<std::uint32_t>(from), stream_layer("sim.wire")});
  std::uint64_t drawn = 16 * line(from, to).frames++;
  const auto happens = [&](double p, std::uint64_t& count) {
    const bool yes = random.uniform(drawn++) < p;
    count += yes;
    return yes;
  };
  FaultCounts& counts = report_.faults;
  const bool stale = happens(faults.stale, counts.stale);
  const bool twice = happens(faults.duplicate, counts.duplicated);
  const bool dropped = happens(faults.drop, counts.dropped);
  const bool corrupt = happens(faults.corrupt, counts.corrupted);
  double late = 0;
  if (happens(faults.reorder, counts.reordered)) late += faults.reorder_seconds * random.uniform(drawn);
  ++drawn;
  if (happens(faults.delay, counts.delayed)) late += faults.delay_seconds * random.uniform(drawn);
  ++drawn;
  if (stale) fly(from, to, from_the_past(frame, random.bits(drawn)), 0);
  ++drawn;
  if (twice) fly(from, to, frame, late + faults.reorder_seconds * random.uniform(drawn));
  ++drawn;
  if (dropped) return;
  if (corrupt) {
    const Stream flips({options_.seed, random.bits(drawn), random.bits(drawn + 1), stream_layer("sim.flips")});
    for (std::uint32_t i = 0, count = 1 + flips.below(8, 0); i < count; ++i)
      frame[flips.below(static_cast<std::uint32_t>(frame.size()), 2 * i + 1)] ^= std::byte{1}
                                                                                 << flips.below(8, 2 * i + 2);
  }
  fly(from, to, std::move(frame), late);
}

void Transport::fly(int from, int to, std::vector<std::byte> frame, double late) {
  ++report_.frames;
  report_.frame_bytes += frame.size();
  const auto bytes = std::make_shared<std::vector<std::byte>>(std::move(frame));
  network_.carry(from, to, bytes->size(), {}, [this, from, to, bytes, late] {
    const auto arrive = [this, from, to, bytes] {
      if (ranks_.gone(to)) return;
      line(to, from).link->arrived(*bytes, scheduler_.now());
      pump(to, from);
    };
    if (late > 0) {
      scheduler_.at(scheduler_.now() + late, to, What::arrive, arrive);
    } else {
      arrive();
    }
  });
}

}  // namespace echelon::sim
