// Messages that leave: to this rank itself, to others at once, or in the order of their keys through a window.

#include <algorithm>
#include <cstring>
#include <tuple>

#include "world/mailbox/mailbox_state.h"
#include "world/mailbox/message_order.h"

namespace echelon {

void Mailbox::State::post(Rank to, const MessageHeader& head, std::span<const std::byte> payload) {
  invariant(head.tag < tags, "a message is for a tag of its receiver");
  if (payload.size() > most_bytes_)
    fail("a message to rank {} would have {} bytes, and at most {} are agreed on", to, payload.size(), most_bytes_);
  if (outlet_) return outlet_(to, head, payload);
  Peer* const receiver = peer(to);
  if (!receiver && to != world_.rank()) fail("rank {} exchanges no messages with rank {}", world_.rank(), to);

  {
    const std::lock_guard lock(mutex_);
    if (closing_) fail("rank {} posts a message to rank {} after it has closed its mailbox", world_.rank(), to);
  }
  if (!receiver) return deliver(to, head, payload);
  MessageBuffer& buffer = empty_buffer(payload.size());
  if (!payload.empty()) std::memcpy(buffer.memory.get(), payload.data(), payload.size());
  buffer.wire = {.kind = head.kind,
                 .tag = head.tag,
                 .key = head.key,
                 .clock = head.clock,
                 .number = head.number,
                 .second = head.second,
                 .bytes = payload.size()};
  bool waits = false;
  {
    const std::lock_guard lock(mutex_);
    waits = window_ > 0 && !payload.empty();
    ++counts_.messages;
    counts_.transfers += payload.empty() ? 1 : 2;
    counts_.bytes += header_bytes + payload.size();
    if (waits) {
      waiting_.push_back({&buffer, receiver, numbered_++});
      std::push_heap(waiting_.begin(), waiting_.end());
    } else {
      send(*receiver, buffer);
      reap(*receiver);
    }
  }
  if (waits) queued_->notify();
}

void Mailbox::State::leave_by_key(std::size_t window) {
  invariant(window > 0 && !sender_, "messages begin to leave by key once");
  queued_ = world_.make_event();
  {
    const std::lock_guard lock(mutex_);
    window_ = window;
    sending_ = true;
  }
  sender_ = world_.spawn("mailbox order", [this, window] {
    send_by_key(window);
    {
      const std::lock_guard lock(mutex_);
      sending_ = false;
    }
    progress_->notify();
  });
}

// In a task of its own, which alone waits for the sends of these messages: two tasks must not wait for the same Work.
void Mailbox::State::send_by_key(std::size_t window) {
  struct OnItsWay {
    MessageBuffer* buffer;
    Peer* to;
    std::size_t bytes;
  };
  std::vector<OnItsWay> ahead;  // the oldest first
  std::size_t bytes = 0;
  try {
    for (;;) {
      std::uint64_t seen = 0;
      bool empty = false;
      {
        const std::lock_guard lock(mutex_);
        empty = waiting_.empty();
        if (stopping_ || (empty && closing_)) return;
        seen = queued_->count();
      }
      if (empty) {
        queued_->wait(seen + 1, std::numeric_limits<double>::max());
        continue;
      }
      while (bytes >= window) {
        const OnItsWay oldest = ahead.front();
        if (!wait(oldest.buffer->header_sent) || !wait(oldest.buffer->payload_sent)) return;
        collect(*oldest.to, *oldest.buffer);
        bytes -= oldest.bytes;
        ahead.erase(ahead.begin());
      }
      const std::lock_guard lock(mutex_);
      std::pop_heap(waiting_.begin(), waiting_.end());
      const Waiting next = waiting_.back();
      waiting_.pop_back();
      send(*next.to, *next.buffer);
      ahead.push_back({next.buffer, next.to, next.buffer->bytes});
      bytes += next.buffer->bytes;
    }
  } catch (const std::exception&) {
    report(std::current_exception());
  }
}

// The sends of that buffer are done, and so are those before it to the same peer.
void Mailbox::State::deliver(Rank from, const MessageHeader& head, std::span<const std::byte> payload) {
  MessageBuffer& buffer = empty_buffer(payload.size());
  if (!payload.empty()) std::memcpy(buffer.memory.get(), payload.data(), payload.size());
  buffer.from = from;
  buffer.head = head;
  enqueue(buffer);
}

void Mailbox::State::collect(Peer& to, const MessageBuffer& last) {
  const std::lock_guard lock(mutex_);
  for (;;) {
    MessageBuffer* const buffer = to.on_their_way.pop_front();
    buffer->header_sent.wait(std::numeric_limits<double>::infinity());
    const bool was_last = buffer == &last;
    give_back(*buffer);
    if (was_last) return;
  }
}

// Before the pool grows, the buffers whose sends are done are given back.
MessageBuffer& Mailbox::State::empty_buffer(std::size_t bytes) {
  if (MessageBuffer* const used = pool_->take_idle(bytes)) return *used;
  {
    const std::lock_guard lock(mutex_);
    for (Peer& peer : peers_) reap(peer);
  }
  return pool_->take(bytes);
}

void Mailbox::State::send(Peer& to, MessageBuffer& buffer) {
  buffer.wire.sequence = to.sent++;
  to.on_their_way.push_back(buffer);  // first, so that it is given back even if a send throws
  buffer.header_sent = world_.send(to.rank, mailbox_channel, message_label(buffer.wire.sequence, header_step),
                                   std::as_bytes(std::span(&buffer.wire, 1)));
  if (buffer.bytes == 0) return;
  buffer.payload_sent =
      world_.send(to.rank, mailbox_channel, message_label(buffer.wire.sequence, payload_step), buffer.payload());
}

void Mailbox::State::reap(Peer& to) {
  if (window_ > 0) return;
  while (MessageBuffer* const buffer = to.on_their_way.front()) {
    if (!buffer->header_sent.finished() || !buffer->payload_sent.finished()) return;
    constexpr double at_once = std::numeric_limits<double>::infinity();
    buffer->header_sent.wait(at_once);
    buffer->payload_sent.wait(at_once);
    give_back(*to.on_their_way.pop_front());
  }
}

std::size_t Mailbox::State::on_their_way(Rank to) {
  Peer* const receiver = peer(to);
  if (!receiver) return 0;  // a message to this rank itself is never on its way
  const std::lock_guard lock(mutex_);
  reap(*receiver);
  std::size_t count = 0;
  for (const MessageBuffer* p = receiver->on_their_way.front(); p; p = p->next) ++count;
  return order_ ? order_->learn(MessageOrder::busy_channel, static_cast<std::uint32_t>(count)) : count;
}

void Mailbox::State::give_back(MessageBuffer& buffer) {
  buffer.header_sent = Work();
  buffer.payload_sent = Work();
  buffer.wire = {};
  pool_->give_back(buffer);
}

}  // namespace echelon
