#include "world/sim/connections.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "world/transport/frame.h"

namespace echelon::sim {

namespace {

constexpr int this_epoch = 2, earlier_epoch = 1;

std::size_t size_of(const SimMessage& message) { return message.bytes.size() + frame_header_bytes; }

// What an earlier incarnation of the sender could have sent under the same number.
std::shared_ptr<const SimMessage> from_the_past(const SimMessage& message, std::uint32_t noise) {
  auto past = std::make_shared<SimMessage>(message);
  for (std::size_t i = 0; i < past->bytes.size(); ++i) past->bytes[i] ^= static_cast<std::byte>((noise + i) | 1);
  past->sender = {};
  return past;
}

// With one to eight bits flipped. A message without bytes has only its label to lose.
std::shared_ptr<const SimMessage> with_flipped_bits(const SimMessage& message, const Stream& random) {
  auto wrong = std::make_shared<SimMessage>(message);
  if (wrong->bytes.empty()) wrong->label.number ^= 1;
  for (std::uint32_t i = 0, count = 1 + random.below(8, 0); i < count && !wrong->bytes.empty(); ++i)
    wrong->bytes[random.below(static_cast<std::uint32_t>(wrong->bytes.size()), 2 * i + 1)] ^=
        std::byte{1} << random.below(8, 2 * i + 2);
  return wrong;
}

}  // namespace

Connections::Connections(Scheduler& scheduler, Network& network, const SimOptions& options, int ranks,
                         SimReport& report, Callbacks callbacks)
    : scheduler_(scheduler),
      network_(network),
      options_(options),
      report_(report),
      callbacks_(std::move(callbacks)),
      outgoing_(static_cast<std::size_t>(ranks)),
      incoming_(static_cast<std::size_t>(ranks)) {}

int Connections::partition_between(int from, int to) const {
  const auto has = [](const std::vector<int>& ranks, int rank) {
    return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  };
  for (std::size_t i = 0; i < options_.faults.partitions.size(); ++i) {
    const auto& p = options_.faults.partitions[i];
    if (scheduler_.now() < p.begin || scheduler_.now() >= p.end) continue;
    if ((has(p.one, from) && has(p.other, to)) || (!p.one_way && has(p.other, from) && has(p.one, to)))
      return static_cast<int>(i);
  }
  return -1;
}

// ---- the sender

void Connections::send(SimMessage message) {
  const std::uint64_t sequence = outgoing_[static_cast<std::size_t>(message.from)][message.to].next_sequence++;
  transmit({this_epoch, sequence, std::make_shared<const SimMessage>(std::move(message))}, 1);
}

double Connections::timeout(const Frame& frame, int tries) const {
  const int from = frame.message->from, to = frame.message->to;
  const double wire = network_.latency(from, to) + network_.latency(to, from) +
                      static_cast<double>(size_of(*frame.message)) * network_.seconds_per_byte(from, to);
  return std::min(options_.longest_timeout, std::ldexp(options_.least_timeout + 2 * wire, tries - 1));
}

void Connections::transmit(const Frame& frame, int tries) {
  const int from = frame.message->from, to = frame.message->to;
  if (put_on_wire(frame) || options_.bugs.never_retransmit) return;
  scheduler_.at(scheduler_.now() + timeout(frame, tries), from, What::timer, [this, frame, tries, from, to] {
    if (callbacks_.crashed(from)) return;
    if (tries == options_.most_tries || options_.bugs.short_timeout)
      return callbacks_.lost(from, to, fmt::format("no answer to {} tries", tries));
    transmit(frame, tries + 1);
  });
}

bool Connections::put_on_wire(const Frame& frame) {
  const FaultPlan& faults = options_.faults;
  FaultCounts& counts = report_.faults;
  const int from = frame.message->from, to = frame.message->to;
  if (const int partition = partition_between(from, to); partition >= 0) {
    ++counts.cut;
    report_.fired.partitions[static_cast<std::size_t>(partition)] = 1;
    return false;
  }
  const bool answers = !callbacks_.crashed(to) && !cut(to, from);
  if (scheduler_.now() < faults.begin || scheduler_.now() >= faults.end) {
    fly(frame, 0);
    return answers;
  }
  // Sixteen numbers for each frame of each direction: what happens to one depends on nothing else.
  const Stream random(
      {options_.seed, static_cast<std::uint32_t>(to), static_cast<std::uint32_t>(from), stream_layer("sim.wire")});
  std::uint64_t drawn = 16 * outgoing_[static_cast<std::size_t>(from)][to].tries++;
  const auto happens = [&](double p, std::uint64_t& count) {
    const bool yes = random.uniform(drawn++) < p;
    count += yes;
    return yes;
  };
  const bool stale = happens(faults.stale, counts.stale);
  const bool twice = happens(faults.duplicate, counts.duplicated);
  const bool dropped = happens(faults.drop, counts.dropped);
  const bool corrupt = happens(faults.corrupt, counts.corrupted);
  std::uint64_t not_counted = 0;
  const bool answer_dropped = happens(faults.drop, not_counted);
  double late = 0;
  if (happens(faults.reorder, counts.reordered)) late += faults.reorder_seconds * random.uniform(drawn);
  ++drawn;
  if (happens(faults.delay, counts.delayed)) late += faults.delay_seconds * random.uniform(drawn);
  ++drawn;
  if (stale) fly({earlier_epoch, frame.sequence, from_the_past(*frame.message, random.bits(drawn))}, 0);
  ++drawn;
  if (twice) fly(frame, late + faults.reorder_seconds * random.uniform(drawn));
  ++drawn;
  if (dropped) {
    ++report_.frames;
    return false;
  }
  if (corrupt) {
    const Stream flips({options_.seed, random.bits(drawn), random.bits(drawn + 1), stream_layer("sim.flips")});
    fly({this_epoch, frame.sequence, with_flipped_bits(*frame.message, flips), true}, late);
    return options_.bugs.skip_checksum;
  }
  fly(frame, late);
  return answers && !answer_dropped;
}

void Connections::fly(Frame frame, double late) {
  const int from = frame.message->from, to = frame.message->to;
  const std::size_t bytes = size_of(*frame.message);
  ++report_.frames;
  report_.frame_bytes += bytes;
  network_.carry(from, to, bytes, {}, [this, to, late, frame = std::move(frame)] {
    if (late <= 0) return arrive(frame);
    scheduler_.at(scheduler_.now() + late, to, What::arrive, [this, frame] { arrive(frame); });
  });
}

// ---- the receiver

void Connections::arrive(const Frame& frame) {
  const int from = frame.message->from, to = frame.message->to;
  if (callbacks_.crashed(to)) return;
  if (frame.corrupt && !options_.bugs.skip_checksum) return;
  if (frame.epoch != this_epoch && !options_.bugs.ignore_epoch) return;
  Incoming& in = incoming_[static_cast<std::size_t>(to)][from];
  if (frame.sequence < in.expected) {
    if (options_.bugs.accept_duplicates) callbacks_.deliver(*frame.message);
    return;
  }
  if (frame.sequence > in.expected && options_.bugs.deliver_out_of_order) {
    if (in.ahead.emplace(frame.sequence, nullptr).second) callbacks_.deliver(*frame.message);
    return;
  }
  in.ahead.emplace(frame.sequence, frame.message);
  while (!in.ahead.empty() && in.ahead.begin()->first == in.expected) {
    const auto message = std::move(in.ahead.begin()->second);
    in.ahead.erase(in.ahead.begin());
    ++in.expected;
    if (message) callbacks_.deliver(*message);
  }
}

}  // namespace echelon::sim
