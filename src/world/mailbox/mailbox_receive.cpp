// Messages that arrive: a reader receives a peer's messages one by one and puts them into the queues of their tags.

#include <algorithm>
#include <limits>
#include <utility>

#include "world/mailbox/mailbox_state.h"

namespace echelon {

void Mailbox::State::read_all(Peer& from) {
  try {
    for (expect_message(from); wait(from.coming) && take_what_came(from);) {
    }
  } catch (const std::exception&) {
    report(std::current_exception());
  }
  left(from, &Peer::reading);
}

// The same for all peers in one task: with one each, thousands of simulated ranks would have millions of readers.
void Mailbox::State::read_everybody() {
  std::size_t open = peers_.size();
  try {
    for (std::size_t p = 0; p < peers_.size(); ++p) {
      expect_message(peers_[p]);
      completions_->watch(peers_[p].coming, p);
    }
    std::size_t p = 0;
    while (open > 0 && wait_for([&](double deadline) { return completions_->next(p, deadline); })) {
      Peer& peer = peers_[p];
      peer.coming.wait(std::numeric_limits<double>::infinity());  // it is finished
      if (take_what_came(peer)) {
        completions_->watch(peer.coming, p);
      } else {
        --open;
        left(peer, &Peer::reading);
      }
    }
  } catch (const std::exception&) {
    report(std::current_exception());
  }
  if (open > 0)
    for (Peer& peer : peers_) left(peer, &Peer::reading);
}

void Mailbox::State::left(Peer& peer, bool Peer::*state) {
  {
    const std::lock_guard lock(mutex_);
    peer.*state = false;
  }
  progress_->notify();
}

void Mailbox::State::expect_message(Peer& from) {
  from.coming = world_.receive(from.rank, mailbox_channel, message_label(from.sequence, header_step),
                               std::as_writable_bytes(std::span(&from.wire, 1)));
}

bool Mailbox::State::take_what_came(Peer& from) {
  if (!from.buffer) {
    const WireHeader& wire = from.wire;
    if (wire.sequence != from.sequence || wire.what < WireHeader::message || wire.what > WireHeader::farewell)
      fail("message {} from rank {} has an unknown type ({}) or another number ({})", from.sequence, from.rank,
           static_cast<unsigned>(wire.what), wire.sequence);
    if (wire.what == WireHeader::goodbye) left(from, &Peer::posts);
    if (wire.what == WireHeader::farewell) return false;
    if (wire.what == WireHeader::message) {
      take_header(from);
      if (wire.bytes > 0) return true;
    }
  }
  if (from.buffer) enqueue(*std::exchange(from.buffer, nullptr));
  ++from.sequence;
  expect_message(from);
  return true;
}

// Then its payload, if there is one, is received next.
void Mailbox::State::take_header(Peer& from) {
  const WireHeader& wire = from.wire;
  if (wire.tag >= tags || wire.bytes > most_bytes_)
    fail("rank {} sent a message of {} bytes to tag {}; at most {} are agreed on, and there are {} tags", from.rank,
         wire.bytes, wire.tag, most_bytes_, tags);
  MessageBuffer& buffer = empty_buffer(wire.bytes);
  buffer.from = from.rank;
  buffer.head = {.kind = wire.kind,
                 .tag = wire.tag,
                 .key = wire.key,
                 .clock = wire.clock,
                 .number = wire.number,
                 .second = wire.second};
  from.buffer = &buffer;
  if (wire.bytes > 0)
    from.coming =
        world_.receive(from.rank, mailbox_channel, message_label(from.sequence, payload_step), buffer.payload());
}

// A rank may post nothing for hours, so there is no deadline. But now and then, the rarer the longer nothing has
// arrived, this looks whether the mailbox is being destroyed.
template <typename Waits>
bool Mailbox::State::wait_for(const Waits& waits) {
  const double longest = world_.place().threads ? 1 : 1e6;  // a look costs virtual time nothing, but a run time
  for (double slice = 0.1; !waits(world_.now() + slice); slice = std::min(2 * slice, longest)) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
  }
  return true;
}

bool Mailbox::State::wait(Work& work) {
  return wait_for([&](double deadline) { return work.wait(deadline); });
}

void Mailbox::State::enqueue(MessageBuffer& buffer) {
  TagQueue& to = tag(buffer.head.tag);
  {
    const std::lock_guard lock(mutex_);
    to.messages.push_back(buffer);
  }
  to.changed->notify();
}

void Mailbox::State::report(std::exception_ptr failure) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
  }
  for (TagQueue& tag : tag_queues_) tag.changed->notify();
  progress_->notify();
}

}  // namespace echelon
