// What leaves: letters to oneself, to others at once, or by their keys through a window.

#include <algorithm>
#include <cstring>
#include <tuple>

#include "world/mail_office.h"

namespace echelon {

void Mail::Office::post(Rank to, const LetterHead& head, std::span<const std::byte> payload) {
  invariant(head.box < boxes, "a letter is for a box of its receiver");
  if (payload.size() > most_bytes_)
    fail("a letter to rank {} would have {} bytes, and at most {} are agreed on", to, payload.size(), most_bytes_);
  Peer* const receiver = peer(to);
  if (!receiver && to != world_.rank()) fail("rank {} exchanges no letters with rank {}", world_.rank(), to);

  {
    const std::lock_guard lock(mutex_);
    if (closing_) fail("rank {} posts a letter to rank {} after it has closed its mail", world_.rank(), to);
  }
  Parcel& parcel = empty_parcel(payload.size());
  if (!payload.empty()) std::memcpy(parcel.memory.get(), payload.data(), payload.size());
  if (!receiver) {
    parcel.from = to;
    parcel.head = head;
    return put_into_box(parcel);
  }
  parcel.wire = {.kind = head.kind,
                 .box = head.box,
                 .key = head.key,
                 .clock = head.clock,
                 .number = head.number,
                 .second = head.second,
                 .bytes = payload.size()};
  bool waits = false;
  {
    const std::lock_guard lock(mutex_);
    waits = window_ > 0 && !payload.empty();
    ++counts_.letters;
    counts_.messages += payload.empty() ? 1 : 2;
    counts_.bytes += header_bytes + payload.size();
    if (waits) {
      waiting_.push_back({&parcel, receiver, numbered_++});
      std::push_heap(waiting_.begin(), waiting_.end());
    } else {
      send(*receiver, parcel);
      reap(*receiver);
    }
  }
  if (waits) queued_->notify();
}

void Mail::Office::leave_by_key(std::size_t window) {
  invariant(window > 0 && !sender_, "letters begin to leave by key once");
  queued_ = world_.make_event();
  {
    const std::lock_guard lock(mutex_);
    window_ = window;
    sending_ = true;
  }
  sender_ = world_.spawn("mail order", [this, window] {
    send_by_key(window);
    {
      const std::lock_guard lock(mutex_);
      sending_ = false;
    }
    leaving_->notify();
  });
}

// In a task of its own. Only this one looks whether letters have left, so that nobody else waits for the same work.
void Mail::Office::send_by_key(std::size_t window) {
  struct OnItsWay {
    Parcel* parcel;
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
        if (!wait(oldest.parcel->header_sent) || !wait(oldest.parcel->payload_sent)) return;
        collect(*oldest.to, *oldest.parcel);
        bytes -= oldest.bytes;
        ahead.erase(ahead.begin());
      }
      const std::lock_guard lock(mutex_);
      std::pop_heap(waiting_.begin(), waiting_.end());
      const Waiting next = waiting_.back();
      waiting_.pop_back();
      send(*next.to, *next.parcel);
      ahead.push_back({next.parcel, next.to, next.parcel->bytes});
      bytes += next.parcel->bytes;
    }
  } catch (const std::exception&) {
    meet(std::current_exception());
  }
}

// That parcel has left, and so have those before it to the same peer.
void Mail::Office::collect(Peer& from, const Parcel& last) {
  const std::lock_guard lock(mutex_);
  for (;;) {
    Parcel* const parcel = from.on_their_way.pop();
    parcel->header_sent.wait(std::numeric_limits<double>::infinity());
    const bool was_last = parcel == &last;
    give_back(*parcel);
    if (was_last) return;
  }
}

// Before the pool grows, all that has left is collected.
Parcel& Mail::Office::empty_parcel(std::size_t bytes) {
  if (Parcel* const used = pool_->take_used(bytes)) return *used;
  {
    const std::lock_guard lock(mutex_);
    for (Peer& peer : peers_) reap(peer);
  }
  return pool_->take(bytes);
}

void Mail::Office::send(Peer& to, Parcel& parcel) {
  parcel.wire.sequence = to.sent++;
  to.on_their_way.push(parcel);  // first, so that it is let go whatever happens
  parcel.header_sent = world_.send(to.rank, mail_channel, letter_label(parcel.wire.sequence, header_step),
                                   std::as_bytes(std::span(&parcel.wire, 1)));
  if (parcel.bytes == 0) return;
  parcel.payload_sent =
      world_.send(to.rank, mail_channel, letter_label(parcel.wire.sequence, payload_step), parcel.payload());
}

void Mail::Office::reap(Peer& from) {
  if (window_ > 0) return;
  while (Parcel* const parcel = from.on_their_way.front()) {
    if (!parcel->header_sent.finished() || !parcel->payload_sent.finished()) return;
    constexpr double at_once = std::numeric_limits<double>::infinity();
    parcel->header_sent.wait(at_once);
    parcel->payload_sent.wait(at_once);
    give_back(*from.on_their_way.pop());
  }
}

std::size_t Mail::Office::on_their_way(Rank to) {
  Peer* const receiver = peer(to);
  if (!receiver) return 0;  // to itself a rank has none
  const std::lock_guard lock(mutex_);
  reap(*receiver);
  std::size_t count = 0;
  for (const Parcel* p = receiver->on_their_way.front(); p; p = p->next) ++count;
  return count;
}

void Mail::Office::give_back(Parcel& parcel) {
  parcel.header_sent = Work();
  parcel.payload_sent = Work();
  parcel.wire = {};
  pool_->give_back(parcel);
}

}  // namespace echelon
