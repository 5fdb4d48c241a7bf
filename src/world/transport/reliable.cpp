#include "world/transport/reliable.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/crc32c.h"

namespace echelon {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

// What a receiver sees that does not look at checksums: they are always right.
std::vector<std::byte> with_believed_checksums(std::span<const std::byte> frame) {
  std::vector<std::byte> bytes(frame.begin(), frame.end());
  if (bytes.size() < frame_header_bytes) return bytes;
  const std::uint32_t payload = crc32c(std::span(bytes).subspan(frame_header_bytes));
  std::memcpy(&bytes[frame_header_bytes - 8], &payload, 4);
  const std::uint32_t header = crc32c(std::span(bytes).first(frame_header_bytes - 4));
  std::memcpy(&bytes[frame_header_bytes - 4], &header, 4);
  return bytes;
}

}  // namespace

ReliableLink::ReliableLink(Ends ends, const ReliableOptions& options, const PlantedBugs& bugs)
    : ends_(ends), options_(options), bugs_(bugs) {}

// ---- sending

void ReliableLink::send(WireMessage message, double now) {
  if (lost_) return;
  queue_.push_back(std::move(message));
  fill_window(now);
}

void ReliableLink::fill_window(double now) {
  while (!queue_.empty() && unacknowledged_.size() < options_.window) {
    unacknowledged_.push_back({.sequence = next_sequence_++, .message = std::move(queue_.front())});
    queue_.pop_front();
    bytes_on_the_way_ += unacknowledged_.back().message.bytes.size() + frame_header_bytes;
    transmit(unacknowledged_.back(), now);
    ++counts_.sent;
  }
}

void ReliableLink::transmit(Outgoing& out, double now) {
  ++out.tries;
  out.sent_at = now;
  out.due = now + timeout(out.tries);
  const WireMessage& message = bugs_.resend_newest ? unacknowledged_.back().message : out.message;
  queue_frame({.kind = FrameKind::data,
               .channel = message.channel,
               .label = message.label,
               .sequence = bugs_.wrap_sequence ? out.sequence % 16 : out.sequence},
              message.bytes);
}

double ReliableLink::timeout(int tries) const {
  const double learned =
      round_trip_ > 0 ? std::max(options_.least_timeout, 2 * round_trip_ + 4 * deviation_) : options_.first_timeout;
  const double of_bytes = static_cast<double>(bytes_on_the_way_) * options_.seconds_per_byte;
  return std::min(options_.longest_timeout, learned * std::ldexp(1.0, std::min(tries - 1, 30))) + of_bytes;
}

void ReliableLink::tick(double now) {
  if (lost_) return;
  for (std::size_t i = 0; i < unacknowledged_.size(); ++i) {
    Outgoing& out = unacknowledged_[i];
    if (out.due > now) continue;
    if (out.tries >= options_.most_tries || bugs_.short_timeout) {
      lost_ = true;
      queue_.clear();
      frames_.clear();
      return;
    }
    if (bugs_.never_retransmit) {
      out.due = now + timeout(++out.tries);
      continue;
    }
    if (bugs_.renumber_retransmission && i + 1 == unacknowledged_.size()) out.sequence = next_sequence_++;
    transmit(out, now);
    ++counts_.resent;
  }
}

double ReliableLink::wake() const {
  double soonest = never;
  if (!lost_)
    for (const Outgoing& out : unacknowledged_) soonest = std::min(soonest, out.due);
  return soonest;
}

void ReliableLink::acknowledge(std::uint64_t upto, double now) {
  bool progress = false;
  while (!unacknowledged_.empty() && unacknowledged_.front().sequence < upto) {
    const Outgoing& out = unacknowledged_.front();
    if (out.tries == 1) measure(now - out.sent_at);  // Karn: of a repeated frame nobody knows which one was answered
    bytes_on_the_way_ -= out.message.bytes.size() + frame_header_bytes;
    unacknowledged_.pop_front();
    progress = true;
  }
  if (progress) fill_window(now);
}

void ReliableLink::measure(double round_trip) {
  if (round_trip_ <= 0) {
    round_trip_ = std::max(round_trip, 1e-12);
    deviation_ = round_trip / 2;
    return;
  }
  deviation_ += (std::abs(round_trip - round_trip_) - deviation_) / 4;
  round_trip_ += (round_trip - round_trip_) / 8;
}

// ---- receiving

void ReliableLink::arrived(std::span<const std::byte> frame, double now) {
  if (lost_) return;
  FrameHeader header;
  std::vector<std::byte> believed;
  if (bugs_.skip_checksum) frame = believed = with_believed_checksums(frame);
  try {
    header = decode_header(frame, {.payload_bytes = options_.most_bytes, .message_bytes = options_.most_bytes});
    check_payload(header, frame.subspan(frame_header_bytes));
  } catch (const BadFrame&) {
    ++counts_.corrupt;
    return;
  }
  const bool of_this_job = header.epoch == ends_.epoch || bugs_.ignore_epoch;
  const bool known = header.kind == FrameKind::data || header.kind == FrameKind::ack;
  if (!of_this_job || !known || header.from != ends_.peer || header.to != ends_.me) {
    ++counts_.strange;
    return;
  }
  // An acknowledgement of what was never sent is a stranger's.
  if (header.acknowledged <= next_sequence_) acknowledge(header.acknowledged, now);
  if (header.kind == FrameKind::data) accept(header, frame.subspan(frame_header_bytes));
}

void ReliableLink::accept(const FrameHeader& header, std::span<const std::byte> payload) {
  const std::uint64_t sequence = header.sequence;
  const bool duplicate = sequence < expected_ || too_early_.contains(sequence);
  if (duplicate) {
    ++counts_.duplicate;
    if (bugs_.accept_duplicates) deliver({header.channel, header.label, {payload.begin(), payload.end()}});
    if (!bugs_.no_ack_of_duplicates) queue_ack();
    return;
  }
  if (sequence >= expected_ + options_.window) {
    ++counts_.too_early;
    return;
  }
  highest_seen_ = std::max(highest_seen_, sequence + 1);
  WireMessage message{header.channel, header.label, {payload.begin(), payload.end()}};
  if (bugs_.deliver_out_of_order) deliver(message);
  too_early_.emplace(sequence, std::move(message));
  for (auto it = too_early_.begin(); it != too_early_.end() && it->first == expected_; it = too_early_.erase(it)) {
    if (bugs_.wrong_channel) it->second.channel = header.channel;
    if (!bugs_.deliver_out_of_order) deliver(std::move(it->second));
    ++expected_;
  }
  queue_ack();
}

void ReliableLink::deliver(WireMessage message) {
  ++counts_.delivered;
  messages_.push_back(std::move(message));
}

// ---- the wire

void ReliableLink::queue_ack() {
  ++counts_.acks;
  queue_frame({.kind = FrameKind::ack}, {});
}

void ReliableLink::queue_frame(FrameHeader header, std::span<const std::byte> payload) {
  header.from = ends_.me;
  header.to = ends_.peer;
  header.epoch = ends_.epoch;
  header.acknowledged = bugs_.acknowledge_gaps ? highest_seen_ : expected_;
  seal(header, payload);
  const FrameHeaderBytes head = encode_header(header);
  std::vector<std::byte> frame;
  frame.reserve(head.size() + payload.size());
  frame.insert(frame.end(), head.begin(), head.end());
  frame.insert(frame.end(), payload.begin(), payload.end());
  frames_.push_back(std::move(frame));
}

bool ReliableLink::next_frame(std::vector<std::byte>& frame) {
  if (frames_.empty()) return false;
  frame = std::move(frames_.front());
  frames_.pop_front();
  return true;
}

bool ReliableLink::next_message(WireMessage& message) {
  if (messages_.empty()) return false;
  message = std::move(messages_.front());
  messages_.pop_front();
  return true;
}

}  // namespace echelon
