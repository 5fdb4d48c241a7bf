#include "world/transport/tcp/frame_sender.h"

#include <algorithm>
#include <utility>

namespace echelon::tcp {

FrameSender::FrameSender(int from, int to, std::uint32_t epoch) : from_(from), to_(to), epoch_(epoch) {
  notes_.reserve(std::size_t{64} << 10);
}

FrameSender::ChannelState& FrameSender::channel_state(Channel channel) {
  if (const auto it = channels_.find(channel); it != channels_.end()) return *it->second;
  // The other side may name channels that we have not used yet, but not without end.
  if (channels_.size() >= most_channels)
    fail("more than {} channels between ranks {} and {}", most_channels, from_, to_);
  auto& made = channels_[channel] = std::make_unique<ChannelState>();
  made->channel = channel;
  return *made;
}

FrameHeader FrameSender::stamp(FrameKind kind) const {
  FrameHeader h;
  h.kind = kind;
  h.from = static_cast<std::uint32_t>(from_);
  h.to = static_cast<std::uint32_t>(to_);
  h.epoch = epoch_;
  return h;
}

void FrameSender::append(FrameHeader header, std::span<const std::byte> payload) {
  seal(header, payload);
  const auto bytes = encode_header(header);
  notes_.insert(notes_.end(), bytes.begin(), bytes.end());
  notes_.insert(notes_.end(), payload.begin(), payload.end());
}

void FrameSender::note(FrameKind kind, std::span<const std::byte> payload, std::uint64_t sequence) {
  FrameHeader h = stamp(kind);
  h.sequence = sequence;
  append(h, payload);
}

void FrameSender::ready(Channel channel, std::uint64_t number) {
  FrameHeader h = stamp(FrameKind::control);
  h.channel = channel;
  h.sequence = number;
  const Note what = Note::ready;
  append(h, std::as_bytes(std::span(&what, 1)));
}

void FrameSender::acknowledge(Channel channel, std::uint64_t cost) {
  FrameHeader h = stamp(FrameKind::ack);
  h.channel = channel;
  h.acknowledged = cost;
  append(h, {});
}

bool FrameSender::send_copy(Channel channel, const Label& label, std::span<const std::byte> bytes) {
  ChannelState& c = channel_state(channel);
  if (bytes.size() > copied_bytes || !c.queue.empty() || c.dead || notes_.size() - notes_at_ > window_bytes)
    return false;
  if (c.sent - c.taken + cost_of(bytes.size()) > window_bytes) return false;
  FrameHeader h = stamp(FrameKind::data);
  h.channel = channel;
  h.label = label;
  h.sequence = c.next++;
  append(h, bytes);
  c.sent += cost_of(bytes.size());
  return true;
}

void FrameSender::send(Transfer& transfer) {
  ChannelState& c = channel_state(transfer.channel);
  transfer.number = c.next++;
  c.queue.push_back(transfer);
  list(c);
}

// Whether the first message of the channel may go on now. Announces it to the other side if that has to ask for it.
bool FrameSender::may_go(ChannelState& c) {
  const Transfer& t = *c.queue.front();
  if (c.dead) return false;
  if (c.at > 0 || t.number < c.granted) return true;
  if (t.bytes <= eager_bytes) return c.sent - c.taken + cost_of(t.bytes) <= window_bytes;
  if (!std::exchange(c.announced, true)) {
    FrameHeader h = stamp(FrameKind::control);
    h.channel = c.channel;
    h.label = t.label;
    h.sequence = t.number;
    h.message_bytes = t.bytes;
    const Note what = Note::announce;
    append(h, std::as_bytes(std::span(&what, 1)));
  }
  return false;
}

void FrameSender::list(ChannelState& c) {
  if (c.listed || c.queue.empty() || !may_go(c)) return;
  c.listed = true;
  ready_.push_back(&c);
}

void FrameSender::hear_ready(Channel channel, std::uint64_t number) {
  ChannelState& c = channel_state(channel);
  c.granted = std::max(c.granted, number + 1);
  list(c);
}

void FrameSender::hear_acknowledge(Channel channel, std::uint64_t cost) {
  ChannelState& c = channel_state(channel);
  if (cost > c.sent || cost < c.taken) fail("an acknowledgement of {} bytes where {} were sent", cost, c.sent);
  c.taken = cost;
  list(c);
}

bool FrameSender::next_frame() {
  if (ready_.empty()) return false;
  ChannelState& c = *ready_.front();
  const Transfer& t = *c.queue.front();
  const std::size_t size = std::min(t.bytes - c.at, piece_bytes);
  payload_ = {t.from + c.at, size};
  FrameHeader h = stamp(FrameKind::data);
  h.channel = c.channel;
  h.label = t.label;
  h.sequence = t.number;
  h.message_bytes = t.bytes;
  h.offset = c.at;
  seal(h, payload_);
  header_ = encode_header(h);
  if (t.bytes <= eager_bytes) c.sent += cost_of(t.bytes);
  written_ = 0;
  framed_ = true;
  frame_channel_ = &c;
  return true;
}

std::size_t FrameSender::gather(std::span<iovec, 3> pieces) {
  std::size_t n = 0;
  const auto add = [&](std::span<const std::byte> bytes) {
    if (!bytes.empty()) pieces[n++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  };
  if (!framed_) next_frame();
  if (!framed_ || written_ == 0) add(std::span(notes_).subspan(notes_at_));
  if (framed_) {
    add(std::span(header_).subspan(std::min(written_, frame_header_bytes)));
    add(payload_.subspan(written_ > frame_header_bytes ? written_ - frame_header_bytes : 0));
  }
  return n;
}

void FrameSender::advance(std::size_t bytes) {
  if (!framed_ || written_ == 0) {
    const std::size_t notes = std::min(bytes, notes_.size() - notes_at_);
    notes_at_ += notes;
    bytes -= notes;
    if (notes_at_ == notes_.size()) {
      notes_.clear();
      notes_at_ = 0;
    }
  }
  if (!framed_) return;
  written_ += bytes;
  if (written_ < frame_header_bytes + payload_.size()) return;
  framed_ = false;
  if (!frame_channel_) return;
  ChannelState& c = *frame_channel_;
  ready_.erase(std::find(ready_.begin(), ready_.end(), &c));
  c.listed = false;
  c.at += payload_.size();
  Transfer* finished = nullptr;
  if (c.at == c.queue.front()->bytes) {
    finished = c.queue.pop_front();
    c.at = 0;
    c.announced = false;
  }
  list(c);  // behind the others
  if (finished) finished->finish(Transfer::done);
}

void FrameSender::abandon(Transfer& transfer) {
  ChannelState& c = channel_state(transfer.channel);
  const bool in_flight = framed_ && frame_channel_ == &c && c.queue.front() == &transfer;
  if (in_flight) {  // what has been promised to the other side must still come
    spare_.assign(payload_.begin(), payload_.end());
    payload_ = spare_;
    frame_channel_ = nullptr;
  }
  c.queue.remove(transfer);
  c.dead = true;  // a gap in the numbers: nothing more can come on this channel
  std::erase(ready_, &c);
  c.listed = false;
}

void FrameSender::fail_all(Transfer::State state) {
  if (framed_ && frame_channel_) {
    Transfer& current = *frame_channel_->queue.front();
    abandon(current);
    current.finish(state);
  }
  for (auto& [channel, c] : channels_) {
    while (Transfer* const t = c->queue.pop_front()) t->finish(state);
    c->listed = false;
    c->dead = true;
  }
  ready_.clear();
}

void FrameSender::fail_unasked(Transfer::State state) {
  for (auto& [channel, c] : channels_) {
    if (c->listed) continue;
    while (Transfer* const t = c->queue.pop_front()) t->finish(state);
    c->dead = true;
  }
}

}  // namespace echelon::tcp
