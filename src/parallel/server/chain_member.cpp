// A server as a member of a chain (chain.h): it passes messages on, knows those that it has seen, may lose its state,
// and takes over from a member that has.

#include <algorithm>

#include "parallel/server/chain.h"

namespace echelon::exchanges {

namespace {

// The last messages that a member has passed on.
class PassedMessages {
 public:
  void keep(std::size_t place, const MessageHeader& head, std::span<const std::byte> payload);  // in place of its last
  struct Kept {
    MessageHeader head;
    std::vector<std::byte> bytes;
    std::uint64_t number = 0;  // 0: none yet
  };
  std::vector<const Kept*> in_order() const;

 private:
  std::vector<Kept> places_;
  std::uint64_t passed_ = 0;
};

void PassedMessages::keep(std::size_t place, const MessageHeader& head, std::span<const std::byte> payload) {
  if (place >= places_.size()) places_.resize(place + 1);
  places_[place].head = head;
  places_[place].bytes.assign(payload.begin(), payload.end());
  places_[place].number = ++passed_;
}

std::vector<const PassedMessages::Kept*> PassedMessages::in_order() const {
  std::vector<const Kept*> all;
  for (const Kept& kept : places_)
    if (kept.number > 0) all.push_back(&kept);
  std::ranges::sort(all, {}, &Kept::number);
  return all;
}

class ChainMember : public ShardReplication {
 public:
  ChainMember(const ServerSettings& settings, int position, ShardCore& core)
      : core_(core),
        position_(position),
        replicas_(settings.replicas),
        flushes_(static_cast<std::size_t>(core.parts.workers())) {
    const int workers = core.parts.workers();
    head_ = (core.parts.rank() - position + workers) % workers;
    for (const ServerSettings::Death& d : settings.deaths)
      if (position == d.position && head_ == rank_of_server(settings, d.server, workers)) dies_at_ = d.at;
  }

  Delivery receive(Message& message) override;
  bool answers() const override { return next_member() == replicas_; }
  bool repeats_answers() const override { return true; }
  bool has_the_model() const override { return member_after(lost_, -1, replicas_) == position_; }
  bool is_lost() const override { return exchanges::is_lost(lost_, position_); }
  void lose_state() override;
  void learn_of_lost(LostMembers lost) override { lost_ |= lost; }
  std::vector<StateSpan> state() override { return {as_state("lost members", lost_)}; }

 private:
  void restore_sender(Message& message) const;
  bool was_seen(const Message& message);
  void pass_on(const Message& message, bool flushes);
  void hear_of_lost(LostMembers lost);
  void tell_lost(Rank writer);
  int next_member() const { return member_after(lost_, position_, replicas_); }
  Rank member_rank(int position) const { return chain_rank(head_, position, core_.parts.workers()); }

  ShardCore& core_;
  int position_, replicas_;
  Rank head_ = 0;              // of the chain
  std::int64_t dies_at_ = -1;  // an experiment: it loses its state after so many updates
  LostMembers lost_ = 0;       // perhaps itself, as far as it has heard
  PassedMessages passed_;
  std::vector<std::int64_t> flushes_;  // by worker: the last that was handled
};

// If there is a next member, it gets the message before it is handled here, so that the order is the same there.
Delivery ChainMember::receive(Message& message) {
  restore_sender(message);
  if (is_lost()) {  // a sender that has not heard of it does so now
    if (message.head.kind != MessageType::lost) tell_lost(message.from);
    return {.handle = false};
  }
  if (message.head.kind == MessageType::lost) {
    hear_of_lost(message.head.clock);
    return {.handle = false};
  }
  const bool flushes = (message.head.kind & ~again) == flush;
  if (dies_at_ >= 0 && !flushes && core_.keys.front().version >= dies_at_) {
    if (core_.die) core_.die();
    lose_state();
    return {.handle = false};
  }
  pass_on(message, flushes);
  Delivery delivery{.answer_again = (message.head.kind & again) != 0};
  message.head.kind &= static_cast<std::uint16_t>(~again);
  delivery.seen = was_seen(message);
  return delivery;
}

void ChainMember::restore_sender(Message& message) const {
  const Rank sender = first_sender(message.head.kind);
  if (sender < 0) return;
  bool from_before = false;
  for (int p = 0; p < position_; ++p) from_before = from_before || message.from == member_rank(p);
  if (!from_before || sender >= core_.parts.workers())
    fail("rank {} passed on a message that is not for this server", message.from);
  message.from = sender;
  message.head.kind = kind_of(message.head.kind);
}

// A worker sends what had no answer again when a server is lost.
bool ChainMember::was_seen(const Message& message) {
  const auto from = static_cast<std::size_t>(message.from);
  if (message.head.kind == flush) {
    if (flushes_[from] >= message.head.clock) return true;
    flushes_[from] = message.head.clock;
    return false;
  }
  if (!core_.has(message.head.key)) return false;  // which is refused where it is handled
  const ShardKey& key = core_.key(message.head.key);
  return (message.head.kind == await ? key.awaited : key.clocks)[from] > message.head.clock;
}

void ChainMember::pass_on(const Message& message, bool flushes) {
  const int next = next_member();
  if (next == replicas_) return;
  MessageHeader head = message.head;
  head.kind = passed_on(message.head.kind, message.from);
  head.tag = chain_tag(next);
  core_.parts.mailbox->post(member_rank(next), head, message.payload());
  if (next == last_member(lost_, replicas_)) return;  // nobody is behind it to whom it would have to go again
  const std::size_t keys = core_.keys.size();
  const std::size_t key = flushes ? keys : std::min<std::size_t>(message.head.key - core_.first(), keys);
  passed_.keep(static_cast<std::size_t>(message.from) * (keys + 1) + key, head, message.payload());
}

// If this member passed messages on to one that is lost now, the next one gets those that it alone may have had.
void ChainMember::hear_of_lost(LostMembers lost) {
  if (lost < 0 || lost >= member_bit(replicas_) || exchanges::is_lost(lost, position_))
    fail("a worker says that members {:#b} of the chain of {} are lost, but number {} is at work", lost, replicas_,
         position_);
  if ((lost_ | lost) == lost_) return;
  const int before = next_member();
  lost_ |= lost;
  const int next = next_member();
  if (next == replicas_) return;
  if (next != before)
    for (const PassedMessages::Kept* kept : passed_.in_order()) {
      MessageHeader head = kept->head;
      head.tag = chain_tag(next);
      core_.parts.mailbox->post(member_rank(next), head, kept->bytes);
    }
  core_.parts.mailbox->post(member_rank(next), {.kind = passed_on(MessageType::lost, core_.parts.rank()),
                                                .tag = chain_tag(next),
                                                .key = core_.first(),
                                                .clock = lost_});
}

// As a crash of this server would: all that it knows is gone, and those who write to it find out. The worker beside it
// lives on.
void ChainMember::lose_state() {
  lost_ |= member_bit(position_);
  for (ShardKey& key : core_.keys)
    for (const StateSpan& state : key.shared->state()) std::ranges::fill(state.bytes, std::byte{0xFF});
  passed_ = {};
  for (const Address& a : core_.writers.list()) tell_lost(a.rank);
}

void ChainMember::tell_lost(Rank writer) {
  core_.parts.mailbox->post(
      writer,
      {.kind = MessageType::lost, .tag = core_.writers.reply_tag(writer), .key = core_.first(), .clock = lost_});
}

}  // namespace

std::unique_ptr<ShardReplication> make_chain_member(const ServerSettings& settings, int position, ShardCore& core) {
  return std::make_unique<ChainMember>(settings, position, core);
}

}  // namespace echelon::exchanges
