#include "world/mailbox/mailbox.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <tuple>

#include "base/crc32c.h"
#include "world/mailbox/mailbox_state.h"
#include "world/mailbox/message_order.h"

namespace echelon {

namespace {

constexpr double longest_repeat = 15;  // seconds that a message which was taken before may be late

// What it carries is not compared: figures about the run so far may be part of that.
MessageOrder::Event event_of(const MessageBuffer& buffer) {
  const MessageHeader& h = buffer.head;
  const std::uint64_t head[] = {h.kind, static_cast<std::uint64_t>(h.clock), std::bit_cast<std::uint64_t>(h.number),
                                h.second, buffer.bytes};
  return {.from = static_cast<std::uint16_t>(buffer.from),
          .has_payload = buffer.bytes > 0,
          .key = h.key,
          .hash = crc32c(std::as_bytes(std::span(head)))};
}

}  // namespace

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

// The message that is to be taken next, or null. While an order is repeated, that is the one which was taken then: it
// is here if the first message of its sender with that key is the same one. The caller holds the lock.
MessageBuffer* Mailbox::State::pop(TagQueue& from, int number, bool looks, Next& outcome) {
  MessageOrder::Event event;
  switch (order_ ? order_->next(number, event, looks) : MessageOrder::Next::anything) {
    case MessageOrder::Next::nothing: outcome = Next::nothing; return nullptr;
    case MessageOrder::Next::anything:
      outcome = from.messages.empty() ? Next::nothing : Next::taken;
      if (order_ && outcome == Next::taken) order_->took(number, event_of(*from.messages.front()));
      if (order_ && outcome == Next::nothing && looks) order_->missed(number);
      return from.messages.pop_front();
    case MessageOrder::Next::this_one: break;
  }
  for (MessageBuffer* b = from.messages.front(); b; b = b->next) {
    if (b->from != event.from || b->head.key != event.key || (b->bytes > 0) != (event.has_payload != 0)) continue;
    if (event_of(*b).hash != event.hash) {
      order_->abandon();
      return pop(from, number, looks, outcome);
    }
    order_->took(number, event);
    from.messages.remove(*b);
    outcome = Next::taken;
    return b;
  }
  outcome = Next::awaited;
  return nullptr;
}

// Where nothing is taken, `over` says that none is to be waited for, and `seen` is the count of the tag's event.
Mailbox::State::Next Mailbox::State::next(int number, Message& message, bool looks, bool& over, std::uint64_t& seen) {
  TagQueue& from = tag(number);
  Next outcome;
  MessageBuffer* buffer = nullptr;
  bool abandoned = false;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    abandoned = order_ && !order_->abandoned();
    buffer = pop(from, number, looks, outcome);
    abandoned = abandoned && order_->abandoned();
    over = from.shut || closed_;
    seen = from.changed->count();
  }
  if (abandoned)
    for (TagQueue& t : tag_queues_) t.changed->notify();
  if (!buffer) return outcome;
  if (message.buffer_) message.pool_->give_back(*message.buffer_);
  message.pool_ = pool_;
  message.buffer_ = buffer;
  message.from = buffer->from;
  message.head = buffer->head;
  return outcome;
}

bool Mailbox::State::try_take(int number, Message& message) {
  for (;;) {
    bool over;
    std::uint64_t seen;
    const Next outcome = next(number, message, true, over, seen);
    if (outcome != Next::awaited) return outcome == Next::taken;
    if (over || !tag(number).changed->wait(seen + 1, world_.now() + longest_repeat)) abandon_order();
  }
}

bool Mailbox::State::take(int number, Message& message, double deadline) {
  constexpr double never = std::numeric_limits<double>::infinity();
  double repeat_until = never;  // how long the message that the order names is waited for
  for (;;) {
    bool over;
    std::uint64_t seen;
    const Next outcome = next(number, message, false, over, seen);
    if (outcome == Next::taken) return true;
    if (over) return false;
    if (outcome == Next::awaited && repeat_until == never) repeat_until = world_.now() + longest_repeat;
    if (tag(number).changed->wait(seen + 1, std::min(deadline, repeat_until))) continue;
    if (outcome != Next::awaited || world_.now() < repeat_until)
      return next(number, message, false, over, seen) == Next::taken;
    abandon_order();
    repeat_until = never;
  }
}

void Mailbox::State::follow(MessageOrder& order) {
  const std::lock_guard lock(mutex_);
  order_ = &order;
}

// What was taken then does not come: it was another program, or somebody's notes were lost.
void Mailbox::State::abandon_order() {
  {
    const std::lock_guard lock(mutex_);
    order_->abandon();
  }
  for (TagQueue& tag : tag_queues_) tag.changed->notify();
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
void Mailbox::follow(MessageOrder& order) { state_->follow(order); }
void Mailbox::close(double timeout) { state_->close(timeout); }
Mailbox::Counts Mailbox::sent() const { return state_->sent(); }

}  // namespace echelon
