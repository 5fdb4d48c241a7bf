#include "world/transport/tcp/frame_receiver.h"

#include <algorithm>
#include <cstring>

namespace echelon::tcp {

namespace {

constexpr std::size_t unparsed_bytes = std::size_t{64} << 10;
constexpr std::size_t longest_control_frame = 4096;

[[noreturn]] void refuse(const std::string& text) { throw BadFrame(FrameFault::length, text); }

}  // namespace

FrameReceiver::FrameReceiver(int from, int to, std::uint32_t epoch, FrameSender& sender, Hear hear)
    : from_(static_cast<std::uint32_t>(from)),
      to_(static_cast<std::uint32_t>(to)),
      epoch_(epoch),
      sender_(sender),
      hear_(std::move(hear)),
      unparsed_(unparsed_bytes),
      bounce_(piece_bytes) {
  limits_.payload_bytes = piece_bytes;
}

FrameReceiver::ChannelState& FrameReceiver::channel_state(Channel channel) {
  if (const auto it = channels_.find(channel); it != channels_.end()) return *it->second;
  if (channels_.size() >= most_channels)
    refuse(fmt::format("more than {} channels from rank {}", most_channels, from_));
  return *(channels_[channel] = std::make_unique<ChannelState>());
}

bool FrameReceiver::fits(Transfer& t, const Label& label, std::uint64_t bytes) {
  if (t.label == label && t.bytes == bytes) return true;
  t.problem = fmt::format("rank {} sent {} where rank {} expected {}", from_, describe(label, bytes), to_,
                          describe(t.label, t.bytes));
  t.finish(Transfer::mismatched);
  return false;
}

void FrameReceiver::deliver(Transfer& t, const Label& label, std::span<const std::byte> bytes) {
  if (!fits(t, label, bytes.size())) return;
  if (t.sink.take)
    t.sink.take(t.sink.self, 0, bytes);
  else
    std::copy(bytes.begin(), bytes.end(), t.into);
  t.finish(Transfer::done);
}

// The receive of that message, if it has begun and was not abandoned.
Transfer* FrameReceiver::receive_of(ChannelState& c, std::uint64_t number) {
  Transfer* const t = c.queue.pending.front();
  return t && t->number == number ? t : nullptr;
}

// A short message was taken: from time to time the sender is told.
void FrameReceiver::take(Channel channel, ChannelState& c, std::uint64_t bytes) {
  if (bytes > eager_bytes) return;
  c.taken += cost_of(bytes);
  if (c.taken - c.told < window_bytes / 4) return;
  c.told = c.taken;
  sender_.acknowledge(channel, c.taken);
}

void FrameReceiver::receive(Transfer& t) {
  ChannelState& c = channel_state(t.channel);
  t.number = c.asked++;
  if (!c.queue.unexpected.empty()) {
    Channels::Unexpected& message = *matcher_.receive(c.queue, t);
    c.unexpected_cost -= cost_of(message.bytes.size());
    take(t.channel, c, message.bytes.size());
    deliver(t, message.label, message.bytes);
    return matcher_.done_with(message);
  }
  if (c.announced && c.announced->sequence == t.number) {
    const FrameHeader announced = *c.announced;
    c.announced.reset();
    if (!fits(t, announced.label, announced.message_bytes)) return;
  }
  matcher_.receive(c.queue, t);
  if (t.bytes > eager_bytes) sender_.ready(t.channel, t.number);
}

void FrameReceiver::abandon(Transfer& t) {
  ChannelState& c = channel_state(t.channel);
  if (c.receiving == &t) {
    c.receiving = nullptr;
    c.discarding = true;
    if (in_payload_ && channel_state_ == &c) {  // in the middle of a frame: the rest is read and thrown away
      target_ = bounce_.data();
      checked_ = false;
    }
  }
  c.queue.pending.remove(t);  // the rest of its message, or all of it, will be thrown away
}

void FrameReceiver::fail_all(Transfer::State state) {
  for (auto& [channel, c] : channels_) {
    if (c->receiving) {
      Transfer& t = *c->receiving;
      abandon(t);
      t.finish(state);
    }
    while (Transfer* const t = matcher_.arrive(c->queue)) t->finish(state);
  }
}

std::size_t FrameReceiver::room(std::span<iovec, 2> pieces) {
  const std::size_t left = in_payload_ ? header_.payload_bytes - have_ : 0;
  if (unparsed_at_ == unparsed_end_) unparsed_at_ = unparsed_end_ = 0;
  if (unparsed_at_ > 0 && unparsed_.size() - unparsed_end_ < frame_header_bytes) {
    std::memmove(unparsed_.data(), unparsed_.data() + unparsed_at_, unparsed_end_ - unparsed_at_);
    unparsed_end_ -= std::exchange(unparsed_at_, 0);
  }
  std::size_t unparsed_room = unparsed_.size() - unparsed_end_;
  // In the middle of a long message only the next frame's header should go to `unparsed_`, not its payload.
  if (left > unparsed_bytes / 4) unparsed_room = std::min(unparsed_room, frame_header_bytes);
  std::size_t n = 0;
  if (left > 0) pieces[n++] = {target_ + have_, left};
  if (unparsed_room > 0) pieces[n++] = {unparsed_.data() + unparsed_end_, unparsed_room};
  return n;
}

void FrameReceiver::advance(std::size_t bytes) {
  if (in_payload_) {
    const std::size_t direct = std::min<std::size_t>(bytes, header_.payload_bytes - have_);
    have_ += direct;
    bytes -= direct;
  }
  unparsed_end_ += bytes;
  parse();
}

void FrameReceiver::parse() {
  for (;;) {
    if (in_payload_) {
      const std::size_t n = std::min<std::size_t>(unparsed_end_ - unparsed_at_, header_.payload_bytes - have_);
      if (n > 0) std::memcpy(target_ + have_, unparsed_.data() + unparsed_at_, n);
      unparsed_at_ += n;
      have_ += n;
      if (have_ < header_.payload_bytes) return;
      in_payload_ = false;
      finish_frame();
    }
    if (unparsed_end_ - unparsed_at_ < frame_header_bytes) return;
    const auto bytes = std::span<const std::byte>(unparsed_).subspan(unparsed_at_, frame_header_bytes);
    unparsed_at_ += frame_header_bytes;
    begin(decode_header(bytes, limits_));
  }
}

void FrameReceiver::begin(const FrameHeader& header) {
  header_ = header;
  if (header.from != from_ || header.to != to_ || header.epoch != epoch_) {
    refuse(fmt::format("a frame from rank {} to rank {} of epoch {} on a connection from rank {} to rank {} of {}",
                       header.from, header.to, header.epoch, from_, to_, epoch_));
  }
  in_payload_ = true;
  checked_ = true;
  have_ = 0;
  channel_state_ = nullptr;
  if (header.kind == FrameKind::data) return begin_data();
  if (header.payload_bytes > longest_control_frame)
    refuse(fmt::format("a control frame of {} bytes", header.payload_bytes));
  target_ = bounce_.data();
}

void FrameReceiver::begin_data() {
  ChannelState& c = channel_state(header_.channel);
  channel_state_ = &c;
  if (header_.sequence != c.arrived || header_.offset != c.offset) {
    refuse(fmt::format("message {} from {} on where message {} from {} on was due", header_.sequence, header_.offset,
                       c.arrived, c.offset));
  }
  if (c.receiving && (c.receiving->bytes != header_.message_bytes || c.receiving->label != header_.label))
    refuse(
        fmt::format("a part of a message of {} bytes in a message of {}", header_.message_bytes, c.receiving->bytes));
  c.announced.reset();
  if (header_.offset == 0 && !c.receiving && header_.sequence < c.asked) {
    Transfer* const t = receive_of(c, header_.sequence);
    if (t && t->label == header_.label && t->bytes == header_.message_bytes) {
      c.receiving = t;
    } else {
      c.discarding = true;
      if (t) fits(*matcher_.arrive(c.queue), header_.label, header_.message_bytes);
    }
  }
  if (c.discarding) {
    target_ = bounce_.data();
  } else if (c.receiving) {
    target_ = c.receiving->sink.take ? bounce_.data() : c.receiving->into + header_.offset;
  } else {
    if (header_.message_bytes > eager_bytes || header_.payload_bytes != header_.message_bytes ||
        c.unexpected_cost + cost_of(header_.message_bytes) > window_bytes) {
      refuse(fmt::format("an unexpected message of {} bytes, more than may be sent unasked", header_.message_bytes));
    }
    arriving_.resize(header_.payload_bytes);
    target_ = arriving_.data();
  }
}

void FrameReceiver::finish_frame() {
  const std::span<const std::byte> payload(target_, header_.payload_bytes);
  if (checked_) check_payload(header_, payload);
  switch (header_.kind) {
    case FrameKind::data: return finish_data();
    case FrameKind::control: return hear_control();
    case FrameKind::ack: return sender_.hear_acknowledge(header_.channel, header_.acknowledged);
    default: return hear_(header_, payload);
  }
}

void FrameReceiver::finish_data() {
  ChannelState& c = *channel_state_;
  Transfer* t = c.receiving;
  if (t && t->sink.take) t->sink.take(t->sink.self, header_.offset, {target_, header_.payload_bytes});
  c.offset += header_.payload_bytes;
  if (c.offset < header_.message_bytes) return;
  // The message is complete.
  ++c.arrived;
  c.offset = 0;
  c.receiving = nullptr;
  if (std::exchange(c.discarding, false)) return take(header_.channel, c, header_.message_bytes);
  if (t) {
    take(header_.channel, c, header_.message_bytes);
    matcher_.arrive(c.queue);
    return t->finish(Transfer::done);
  }
  if (header_.sequence >= c.asked) {
    c.unexpected_cost += cost_of(arriving_.size());
    Arrival& arrival = matcher_.keep(c.queue);
    arrival.label = header_.label;
    std::swap(arrival.bytes, arriving_);
    return;
  }
  take(header_.channel, c, header_.message_bytes);
  if (receive_of(c, header_.sequence))  // began while the message arrived
    deliver(*matcher_.arrive(c.queue), header_.label, arriving_);
}

void FrameReceiver::hear_control() {
  const auto what = header_.payload_bytes == 1 ? static_cast<Note>(bounce_[0]) : Note{};
  if (what == Note::ready) return sender_.hear_ready(header_.channel, header_.sequence);
  if (what != Note::announce) refuse("a control frame with an unknown note");
  // A long message waits for its receive. If that has begun, `ready` was sent; here the two are compared.
  ChannelState& c = channel_state(header_.channel);
  if (header_.sequence == c.asked) c.announced = header_;
  Transfer* const t = receive_of(c, header_.sequence);
  if (!t || (t->label == header_.label && t->bytes == header_.message_bytes)) return;
  fits(*matcher_.arrive(c.queue), header_.label, header_.message_bytes);
}

}  // namespace echelon::tcp
