// What comes: a reader takes a peer's letters one by one and puts them into their boxes.

#include <algorithm>
#include <limits>
#include <utility>

#include "world/mail_office.h"

namespace echelon {

void Mail::Office::read_all(Peer& from) {
  try {
    for (expect_letter(from); wait(from.coming) && take_what_came(from);) {
    }
  } catch (const std::exception&) {
    meet(std::current_exception());
  }
  left(from, &Peer::reading);
}

// The same for all peers in one task: thousands of simulated ranks would have millions of readers.
void Mail::Office::read_everybody() {
  std::size_t open = peers_.size();
  try {
    for (std::size_t p = 0; p < peers_.size(); ++p) {
      expect_letter(peers_[p]);
      arrivals_->watch(peers_[p].coming, p);
    }
    std::size_t p = 0;
    while (open > 0 && wait_for([&](double deadline) { return arrivals_->next(p, deadline); })) {
      Peer& peer = peers_[p];
      peer.coming.wait(std::numeric_limits<double>::infinity());  // it is finished
      if (take_what_came(peer)) {
        arrivals_->watch(peer.coming, p);
      } else {
        --open;
        left(peer, &Peer::reading);
      }
    }
  } catch (const std::exception&) {
    meet(std::current_exception());
  }
  if (open > 0)
    for (Peer& peer : peers_) left(peer, &Peer::reading);
}

void Mail::Office::left(Peer& peer, bool Peer::*state) {
  {
    const std::lock_guard lock(mutex_);
    peer.*state = false;
  }
  leaving_->notify();
}

void Mail::Office::expect_letter(Peer& from) {
  from.coming = world_.receive(from.rank, mail_channel, letter_label(from.sequence, header_step),
                               std::as_writable_bytes(std::span(&from.wire, 1)));
}

bool Mail::Office::take_what_came(Peer& from) {
  if (!from.parcel) {
    const LetterOnTheWire& wire = from.wire;
    if (wire.sequence != from.sequence || wire.what < LetterOnTheWire::letter || wire.what > LetterOnTheWire::farewell)
      fail("what came from rank {} as letter {} is none", from.rank, from.sequence);
    if (wire.what == LetterOnTheWire::goodbye) left(from, &Peer::writes);
    if (wire.what == LetterOnTheWire::farewell) return false;
    if (wire.what == LetterOnTheWire::letter) {
      take_header(from);
      if (wire.bytes > 0) return true;
    }
  }
  if (from.parcel) put_into_box(*std::exchange(from.parcel, nullptr));
  ++from.sequence;
  expect_letter(from);
  return true;
}

// Its payload, if there is one, is expected next.
void Mail::Office::take_header(Peer& from) {
  const LetterOnTheWire& wire = from.wire;
  if (wire.box >= boxes || wire.bytes > most_bytes_)
    fail("rank {} sent a letter of {} bytes to box {}; at most {} are agreed on, and there are {} boxes", from.rank,
         wire.bytes, wire.box, most_bytes_, boxes);
  Parcel& parcel = empty_parcel(wire.bytes);
  parcel.from = from.rank;
  parcel.head = {.kind = wire.kind,
                 .box = wire.box,
                 .key = wire.key,
                 .clock = wire.clock,
                 .number = wire.number,
                 .second = wire.second};
  from.parcel = &parcel;
  if (wire.bytes > 0)
    from.coming = world_.receive(from.rank, mail_channel, letter_label(from.sequence, payload_step), parcel.payload());
}

// It is no fault if nobody writes for hours, so there is no deadline. But now and then, the rarer the longer nothing
// has come, look whether this rank still wants to know.
template <typename Waits>
bool Mail::Office::wait_for(const Waits& waits) {
  const double longest = world_.place().threads ? 1 : 1e6;  // a look costs virtual time nothing, but a run time
  for (double slice = 0.1; !waits(world_.now() + slice); slice = std::min(2 * slice, longest)) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
  }
  return true;
}

bool Mail::Office::wait(Work& work) {
  return wait_for([&](double deadline) { return work.wait(deadline); });
}

void Mail::Office::put_into_box(Parcel& parcel) {
  Box& to = box(parcel.head.box);
  {
    const std::lock_guard lock(mutex_);
    to.letters.push(parcel);
  }
  to.changed->notify();
}

void Mail::Office::meet(std::exception_ptr failure) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
  }
  for (Box& box : boxes_) box.changed->notify();
  leaving_->notify();
}

}  // namespace echelon
