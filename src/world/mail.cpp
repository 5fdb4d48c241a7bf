#include "world/mail.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <tuple>

#include "world/channels.h"
#include "world/parcel.h"

namespace echelon {

namespace {

enum Step : std::uint16_t { header_step = 0, payload_step = 1 };

Label label(std::uint32_t sequence, Step step) { return {.step = step, .number = sequence}; }

}  // namespace

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

// ---- the office

class Mail::Office {
 public:
  Office(World& world, std::size_t most_bytes, const std::optional<std::vector<Rank>>& peers);
  ~Office();

  void post(Rank to, const LetterHead& head, std::span<const std::byte> payload);
  std::size_t on_their_way(Rank to);
  void leave_by_key(std::size_t window);
  bool try_take(int box, Letter& letter);
  bool take(int box, Letter& letter, double deadline);
  void shut(int box);
  void close(double patience);
  Counts sent() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  struct Box {
    ParcelQueue letters;
    bool shut = false;
    std::unique_ptr<Event> changed;
  };
  struct Peer {
    Rank rank = 0;
    bool writes = true;      // its goodbye has not come
    bool reading = true;     // by its reader
    std::uint32_t sent = 0;  // letters
    ParcelQueue on_their_way;
  };

  struct Waiting {  // to leave by its key
    Parcel* parcel;
    Peer* to;
    std::uint64_t number;
    bool operator<(const Waiting& o) const {  // as a heap wants it: the last one leaves first
      return std::tuple(o.parcel->wire.key, o.number) < std::tuple(parcel->wire.key, number);
    }
  };

  Box& box(int number) {
    invariant(number >= 0 && number < boxes, "a rank has that box");
    return boxes_[static_cast<std::size_t>(number)];
  }
  Peer* peer(Rank rank);
  bool next(int number, Letter& letter, bool& over, std::uint64_t& seen);
  void put_into_box(Parcel& parcel);
  Parcel& empty_parcel(std::size_t bytes);
  void send(Peer& to, Parcel& parcel);
  void reap(Peer& from);
  void send_by_key();
  void collect(Peer& from, const Parcel& last);
  void give_back(Parcel& parcel);
  void tell_peers(LetterOnTheWire::What what);
  void wait_while(bool Peer::*state, double deadline);
  void stop();

  void read_all(Peer& from);
  bool read_letter(Peer& from, std::uint32_t sequence);  // false: it was the last
  bool wait(Work& work);                                 // false: the office closes without it
  void left(Peer& peer, bool Peer::*state);
  void meet(std::exception_ptr failure);

  World& world_;
  const std::size_t most_bytes_;
  const int exceptions_ = std::uncaught_exceptions();
  const std::shared_ptr<ParcelPool> pool_ = std::make_shared<ParcelPool>();

  // Guards everything below; never held while waiting, for in a simulated world tasks are not threads.
  mutable std::mutex mutex_;
  std::array<Box, boxes> boxes_;
  std::vector<Peer> peers_;         // by rank
  std::unique_ptr<Event> leaving_;  // of a peer
  std::exception_ptr failure_;
  Counts counts_;
  std::size_t window_ = 0;        // above 0: letters leave by key
  std::vector<Waiting> waiting_;  // a heap
  std::uint64_t numbered_ = 0;
  std::unique_ptr<Event> queued_;  // something waits to leave, or nothing will any more
  bool closing_ = false, closed_ = false, stopping_ = false;
  std::vector<std::unique_ptr<Task>> readers_;
  std::unique_ptr<Task> sender_;  // of what waits
};

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
    for (Peer& peer : peers_)
      readers_.push_back(world.spawn(fmt::format("mail {}", peer.rank), [this, &peer] { read_all(peer); }));
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

// ---- out

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
  const bool waits = window_ > 0 && !payload.empty();
  {
    const std::lock_guard lock(mutex_);
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
  window_ = window;
  sender_ = world_.spawn("mail order", [this] { send_by_key(); });
}

// In a task of its own. Only this one looks whether letters have left, so that nobody else waits for the same work.
void Mail::Office::send_by_key() {
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
      while (bytes >= window_) {
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
  parcel.header_sent = world_.send(to.rank, mail_channel, label(parcel.wire.sequence, header_step),
                                   std::as_bytes(std::span(&parcel.wire, 1)));
  if (parcel.bytes == 0) return;
  parcel.payload_sent = world_.send(to.rank, mail_channel, label(parcel.wire.sequence, payload_step), parcel.payload());
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

// ---- in

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
  Work header = world_.receive(from.rank, mail_channel, label(sequence, header_step),
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
    Work payload = world_.receive(from.rank, mail_channel, label(sequence, payload_step), parcel.payload());
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
