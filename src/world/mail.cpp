#include "world/mail.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <tuple>

#include "world/mail_office.h"

namespace echelon {

// ---- a letter

Letter::Letter(Letter&& other) noexcept
    : from(other.from),
      head(other.head),
      pool_(std::move(other.pool_)),
      parcel_(std::exchange(other.parcel_, nullptr)) {}

Letter& Letter::operator=(Letter&& other) noexcept {
  from = other.from;
  head = other.head;
  std::swap(pool_, other.pool_);
  std::swap(parcel_, other.parcel_);
  return *this;
}

Letter::~Letter() {
  if (parcel_) pool_->give_back(*parcel_);
}

std::span<std::byte> Letter::payload() { return parcel_ ? parcel_->payload() : std::span<std::byte>(); }
std::span<const std::byte> Letter::payload() const { return parcel_ ? parcel_->payload() : std::span<std::byte>(); }

std::span<float> Letter::floats() {
  const auto bytes = payload();
  if (bytes.size() % sizeof(float) != 0)
    fail("a letter of rank {} should carry float32 numbers and has {} bytes", from, bytes.size());
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}
std::span<const float> Letter::floats() const { return const_cast<Letter&>(*this).floats(); }

Mail::Office::Office(World& world, std::size_t most_bytes, const std::optional<std::vector<Rank>>& peers)
    : world_(world), most_bytes_(most_bytes), leaving_(world.make_event()) {
  for (Box& box : boxes_) box.changed = world.make_event();
  std::vector<Rank> others = peers.value_or(std::vector<Rank>());
  if (!peers)
    for (Rank r = 0; r < world.size(); ++r)
      if (r != world.rank()) others.push_back(r);
  std::ranges::sort(others);
  for (const Rank r : others) {
    invariant(r >= 0 && r < world.size() && r != world.rank(), "letters go to other ranks of this world");
    invariant(peers_.empty() || peers_.back().rank != r, "a peer is named once");
    peers_.emplace_back().rank = r;
  }
  try {
    if ((arrivals_ = world.make_arrivals())) {
      readers_.push_back(world.spawn("mail", [this] { read_everybody(); }));
    } else {
      for (Peer& peer : peers_)
        readers_.push_back(world.spawn(fmt::format("mail {}", peer.rank), [this, &peer] { read_all(peer); }));
    }
  } catch (...) {  // those that run must not outlive what they use
    stop();
    throw;
  }
}

void Mail::Office::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  if (sender_) queued_->notify();
  sender_.reset();
  readers_.clear();
}

Mail::Office::~Office() {
  if (!closed_) {
    try {
      if (std::uncaught_exceptions() <= exceptions_) world_.give_up("it left the others without closing its mail");
    } catch (...) {  // a simulated rank that has crashed can say nothing
    }
  }
  stop();
  // What is still on its way is let go before its memory.
  for (Peer& peer : peers_)
    while (Parcel* const parcel = peer.on_their_way.pop()) give_back(*parcel);
}

Mail::Office::Peer* Mail::Office::peer(Rank rank) {
  const auto found = std::ranges::lower_bound(peers_, rank, {}, &Peer::rank);
  return found != peers_.end() && found->rank == rank ? &*found : nullptr;
}

// ---- taking

// True with a letter; else `over` says whether to wait for none, and `seen` what has happened to the box so far.
bool Mail::Office::next(int number, Letter& letter, bool& over, std::uint64_t& seen) {
  Box& from = box(number);
  Parcel* parcel = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    parcel = from.letters.pop();
    over = from.shut || closed_;
    seen = from.changed->count();
  }
  if (!parcel) return false;
  if (letter.parcel_) letter.pool_->give_back(*letter.parcel_);
  letter.pool_ = pool_;
  letter.parcel_ = parcel;
  letter.from = parcel->from;
  letter.head = parcel->head;
  return true;
}

bool Mail::Office::try_take(int box, Letter& letter) {
  bool over;
  std::uint64_t seen;
  return next(box, letter, over, seen);
}

bool Mail::Office::take(int number, Letter& letter, double deadline) {
  for (;;) {
    bool over;
    std::uint64_t seen;
    if (next(number, letter, over, seen)) return true;
    if (over) return false;
    if (!box(number).changed->wait(seen + 1, deadline)) return try_take(number, letter);
  }
}

void Mail::Office::shut(int number) {
  {
    const std::lock_guard lock(mutex_);
    box(number).shut = true;
  }
  box(number).changed->notify();
}

// ---- the end

// Twice around: a rank that has got all goodbyes says farewell, and its readers listen until they hear one. So somebody
// always notices if a rank is lost while another still waits for letters, and nobody leaves before all have stopped.
void Mail::Office::close(double patience) {
  if (closed_) return;
  const double deadline = world_.now() + patience;
  if (sender_) {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    queued_->notify();
    wait_for_sender(deadline, patience);
    sender_.reset();
  }
  tell_peers(LetterOnTheWire::goodbye);
  wait_while(&Peer::writes, deadline);
  tell_peers(LetterOnTheWire::farewell);
  wait_while(&Peer::reading, deadline);
  readers_.clear();
  for (Peer& peer : peers_) {  // nobody else touches these any more
    while (Parcel* const parcel = peer.on_their_way.front()) {
      if (!parcel->header_sent.wait(deadline) || !parcel->payload_sent.wait(deadline))
        throw TooLate(fmt::format("rank {} has not taken its letters within {:g} s", peer.rank, patience));
      give_back(*peer.on_their_way.pop());
    }
  }
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  for (Box& box : boxes_) box.changed->notify();
}

void Mail::Office::tell_peers(LetterOnTheWire::What what) {
  const std::lock_guard lock(mutex_);
  closing_ = true;
  for (Peer& peer : peers_) {
    Parcel& parcel = pool_->take(0);
    parcel.wire = {.what = what};
    send(peer, parcel);
  }
}

void Mail::Office::wait_for_sender(double deadline, double patience) {
  for (;;) {
    Rank late = 0;
    std::uint64_t seen = 0;
    {
      const std::lock_guard lock(mutex_);
      if (failure_) std::rethrow_exception(failure_);
      if (!sending_) return;
      if (!waiting_.empty()) late = waiting_.front().to->rank;
      seen = leaving_->count();
    }
    if (!leaving_->wait(seen + 1, deadline))
      throw TooLate(fmt::format("letters to rank {} have not left within {:g} s; it is in {}", late, patience,
                                world_.doing_of(late)));
  }
}

void Mail::Office::wait_while(bool Peer::*state, double deadline) {
  for (;;) {
    const Peer* late = nullptr;
    std::uint64_t seen = 0;
    {
      const std::lock_guard lock(mutex_);
      if (failure_) std::rethrow_exception(failure_);
      const auto found = std::ranges::find(peers_, true, state);
      if (found != peers_.end()) late = &*found;
      seen = leaving_->count();
    }
    if (!late) return;
    if (!leaving_->wait(seen + 1, deadline))
      throw TooLate(
          fmt::format("rank {} does not close its mail; it is in {}", late->rank, world_.doing_of(late->rank)));
  }
}

// ---- the face

Mail::Mail(World& world, std::size_t most_bytes, std::optional<std::vector<Rank>> peers)
    : office_(std::make_unique<Office>(world, most_bytes, peers)) {}
Mail::~Mail() = default;
void Mail::post(Rank to, const LetterHead& head, std::span<const std::byte> payload) {
  office_->post(to, head, payload);
}
std::size_t Mail::on_their_way(Rank to) { return office_->on_their_way(to); }
void Mail::leave_by_key(std::size_t window) { office_->leave_by_key(window); }
bool Mail::take(int box, Letter& letter, double deadline) { return office_->take(box, letter, deadline); }
bool Mail::try_take(int box, Letter& letter) { return office_->try_take(box, letter); }
void Mail::shut(int box) { office_->shut(box); }
void Mail::close(double patience) { office_->close(patience); }
Mail::Counts Mail::sent() const { return office_->sent(); }

}  // namespace echelon
