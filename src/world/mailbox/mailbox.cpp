#include "world/mailbox/mailbox.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <tuple>

#include "world/mailbox/mailbox_state.h"

namespace echelon {

// ---- a message

Message::Message(Message&& other) noexcept
    : from(other.from),
      head(other.head),
      pool_(std::move(other.pool_)),
      buffer_(std::exchange(other.buffer_, nullptr)) {}

Message& Message::operator=(Message&& other) noexcept {
  from = other.from;
  head = other.head;
  std::swap(pool_, other.pool_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

Message::~Message() {
  if (buffer_) pool_->give_back(*buffer_);
}

std::span<std::byte> Message::payload() { return buffer_ ? buffer_->payload() : std::span<std::byte>(); }
std::span<const std::byte> Message::payload() const { return buffer_ ? buffer_->payload() : std::span<std::byte>(); }

std::span<float> Message::floats() {
  const auto bytes = payload();
  if (bytes.size() % sizeof(float) != 0)
    fail("a message of rank {} should carry float32 numbers and has {} bytes", from, bytes.size());
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}
std::span<const float> Message::floats() const { return const_cast<Message&>(*this).floats(); }

Mailbox::State::State(World& world, std::size_t most_bytes, const std::optional<std::vector<Rank>>& peers)
    : world_(world), most_bytes_(most_bytes), progress_(world.make_event()) {
  for (TagQueue& tag : tag_queues_) tag.changed = world.make_event();
  std::vector<Rank> others = peers.value_or(std::vector<Rank>());
  if (!peers)
    for (Rank r = 0; r < world.size(); ++r)
      if (r != world.rank()) others.push_back(r);
  std::ranges::sort(others);
  for (const Rank r : others) {
    invariant(r >= 0 && r < world.size() && r != world.rank(), "messages go to other ranks of this world");
    invariant(peers_.empty() || peers_.back().rank != r, "a peer is named once");
    peers_.emplace_back().rank = r;
  }
  try {
    if ((completions_ = world.make_completion_queue())) {
      readers_.push_back(world.spawn("mailbox", [this] { read_everybody(); }));
    } else {
      for (Peer& peer : peers_)
        readers_.push_back(world.spawn(fmt::format("mailbox {}", peer.rank), [this, &peer] { read_all(peer); }));
    }
  } catch (...) {  // those that run must not outlive what they use
    stop();
    throw;
  }
}

void Mailbox::State::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  if (sender_) queued_->notify();
  sender_.reset();
  readers_.clear();
}

Mailbox::State::~State() {
  if (!closed_) {
    try {
      if (std::uncaught_exceptions() <= exceptions_) world_.abort("it left without closing its mailbox");
    } catch (...) {  // a simulated rank that has crashed can say nothing
    }
  }
  stop();
  // Sends that are not done are abandoned before their memory is freed.
  for (Peer& peer : peers_)
    while (MessageBuffer* const buffer = peer.on_their_way.pop_front()) give_back(*buffer);
}

Mailbox::State::Peer* Mailbox::State::peer(Rank rank) {
  const auto found = std::ranges::lower_bound(peers_, rank, {}, &Peer::rank);
  return found != peers_.end() && found->rank == rank ? &*found : nullptr;
}

// ---- taking

// True with a message; otherwise `over` says that none is to be waited for, and `seen` is the count of the tag's event.
bool Mailbox::State::next(int number, Message& message, bool& over, std::uint64_t& seen) {
  TagQueue& from = tag(number);
  MessageBuffer* buffer = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    buffer = from.messages.pop_front();
    over = from.shut || closed_;
    seen = from.changed->count();
  }
  if (!buffer) return false;
  if (message.buffer_) message.pool_->give_back(*message.buffer_);
  message.pool_ = pool_;
  message.buffer_ = buffer;
  message.from = buffer->from;
  message.head = buffer->head;
  return true;
}

bool Mailbox::State::try_take(int tag, Message& message) {
  bool over;
  std::uint64_t seen;
  return next(tag, message, over, seen);
}

bool Mailbox::State::take(int number, Message& message, double deadline) {
  for (;;) {
    bool over;
    std::uint64_t seen;
    if (next(number, message, over, seen)) return true;
    if (over) return false;
    if (!tag(number).changed->wait(seen + 1, deadline)) return try_take(number, message);
  }
}

void Mailbox::State::shut(int number) {
  {
    const std::lock_guard lock(mutex_);
    tag(number).shut = true;
  }
  tag(number).changed->notify();
}

// ---- the end

// Twice around: a rank that has got all goodbyes says farewell, and its readers listen until they hear one. So somebody
// always notices if a rank is lost while another still waits for messages, and nobody leaves before all have stopped.
void Mailbox::State::close(double timeout) {
  if (closed_) return;
  const double deadline = world_.now() + timeout;
  if (sender_) {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    queued_->notify();
    wait_for_sender(deadline, timeout);
    sender_.reset();
  }
  tell_peers(WireHeader::goodbye);
  wait_while(&Peer::posts, deadline);
  tell_peers(WireHeader::farewell);
  wait_while(&Peer::reading, deadline);
  readers_.clear();
  for (Peer& peer : peers_) {  // nobody else touches these any more
    while (MessageBuffer* const buffer = peer.on_their_way.front()) {
      if (!buffer->header_sent.wait(deadline) || !buffer->payload_sent.wait(deadline))
        throw TooLate(fmt::format("rank {} has not taken its messages within {:g} s", peer.rank, timeout));
      give_back(*peer.on_their_way.pop_front());
    }
  }
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  for (TagQueue& tag : tag_queues_) tag.changed->notify();
}

void Mailbox::State::tell_peers(WireHeader::What what) {
  const std::lock_guard lock(mutex_);
  closing_ = true;
  for (Peer& peer : peers_) {
    MessageBuffer& buffer = pool_->take(0);
    buffer.wire = {.what = what};
    send(peer, buffer);
  }
}

void Mailbox::State::wait_for_sender(double deadline, double timeout) {
  for (;;) {
    Rank late = 0;
    std::uint64_t seen = 0;
    {
      const std::lock_guard lock(mutex_);
      if (failure_) std::rethrow_exception(failure_);
      if (!sending_) return;
      if (!waiting_.empty()) late = waiting_.front().to->rank;
      seen = progress_->count();
    }
    if (!progress_->wait(seen + 1, deadline))
      throw TooLate(fmt::format("messages to rank {} have not left within {:g} s; it is in {}", late, timeout,
                                to_text(world_.status_of(late))));
  }
}

void Mailbox::State::wait_while(bool Peer::*state, double deadline) {
  for (;;) {
    const Peer* late = nullptr;
    std::uint64_t seen = 0;
    {
      const std::lock_guard lock(mutex_);
      if (failure_) std::rethrow_exception(failure_);
      const auto found = std::ranges::find(peers_, true, state);
      if (found != peers_.end()) late = &*found;
      seen = progress_->count();
    }
    if (!late) return;
    if (!progress_->wait(seen + 1, deadline))
      throw TooLate(fmt::format("rank {} does not close its mailbox; it is in {}", late->rank,
                                to_text(world_.status_of(late->rank))));
  }
}

// ---- Mailbox

Mailbox::Mailbox(World& world, std::size_t most_bytes, std::optional<std::vector<Rank>> peers)
    : state_(std::make_unique<State>(world, most_bytes, peers)) {}
Mailbox::Mailbox(World& world, std::size_t most_bytes, Outlet outlet)
    : state_(std::make_unique<State>(world, most_bytes, std::vector<Rank>())) {
  state_->leave_through(std::move(outlet));
}
Mailbox::~Mailbox() = default;
void Mailbox::post(Rank to, const MessageHeader& head, std::span<const std::byte> payload) {
  state_->post(to, head, payload);
}
void Mailbox::deliver(Rank from, const MessageHeader& head, std::span<const std::byte> payload) {
  state_->deliver(from, head, payload);
}
std::size_t Mailbox::on_their_way(Rank to) { return state_->on_their_way(to); }
void Mailbox::leave_by_key(std::size_t window) { state_->leave_by_key(window); }
bool Mailbox::take(int tag, Message& message, double deadline) { return state_->take(tag, message, deadline); }
bool Mailbox::try_take(int tag, Message& message) { return state_->try_take(tag, message); }
void Mailbox::shut(int tag) { state_->shut(tag); }
void Mailbox::close(double timeout) { state_->close(timeout); }
Mailbox::Counts Mailbox::sent() const { return state_->sent(); }

}  // namespace echelon
