// What comes: a reader for each peer takes its letters one by one and puts them into their boxes.

#include <algorithm>
#include <cstring>

#include "world/mail_office.h"

namespace echelon {

void Mail::Office::read_all(Peer& from) {
  try {
    for (std::uint32_t sequence = 0; read_letter(from, sequence); ++sequence) {
    }
  } catch (const std::exception&) {
    meet(std::current_exception());
  }
  left(from, &Peer::reading);
}

void Mail::Office::left(Peer& peer, bool Peer::*state) {
  {
    const std::lock_guard lock(mutex_);
    peer.*state = false;
  }
  leaving_->notify();
}

bool Mail::Office::read_letter(Peer& from, std::uint32_t sequence) {
  LetterOnTheWire wire;
  Work header = world_.receive(from.rank, mail_channel, letter_label(sequence, header_step),
                               std::as_writable_bytes(std::span(&wire, 1)));
  if (!wait(header)) return false;
  if (wire.sequence != sequence || wire.what < LetterOnTheWire::letter || wire.what > LetterOnTheWire::farewell)
    fail("what came from rank {} as letter {} is none", from.rank, sequence);
  if (wire.what == LetterOnTheWire::goodbye) left(from, &Peer::writes);
  if (wire.what != LetterOnTheWire::letter) return wire.what == LetterOnTheWire::goodbye;
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
  if (wire.bytes > 0) {
    Work payload = world_.receive(from.rank, mail_channel, letter_label(sequence, payload_step), parcel.payload());
    if (!wait(payload)) return false;  // the pool has lost a parcel: it ends soon
  }
  put_into_box(parcel);
  return true;
}

// It is no fault if nobody writes for hours, so there is no deadline. But now and then, the rarer the longer nothing
// has come, look whether this rank still wants to know.
bool Mail::Office::wait(Work& work) {
  const double longest = world_.place().threads ? 1 : 1e6;  // a look costs virtual time nothing, but a run time
  for (double slice = 0.1; !work.wait(world_.now() + slice); slice = std::min(2 * slice, longest)) {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
  }
  return true;
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
