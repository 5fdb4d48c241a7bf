// A server as part of a chain (server_chain.h): passing messages on, knowing them again, losing its state, and taking
// over from one that has.

#include "parallel/server/chain.h"

#include <algorithm>

#include "parallel/server/shard.h"

namespace echelon::exchanges {

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

bool ServerShard::has_the_model() const { return member_after(lost_, -1, place_.replicas) == place_.position; }
int ServerShard::next_member() const { return member_after(lost_, place_.position, place_.replicas); }
Rank ServerShard::member_rank(int position) const {
  const Rank head = parts_.rank() - place_.position + parts_.workers();
  return chain_rank(head, position, parts_.workers());
}

// Whether the message is to be handled here, as its first sender's; if there is a next server, it has been passed on to
// it before, so that the order is the same there.
bool ServerShard::is_passed(Message& message) {
  if (place_.replicas == 1) return true;
  if (const Rank sender = first_sender(message.head.kind); sender >= 0) {
    bool from_before = false;
    for (int p = 0; p < place_.position; ++p) from_before = from_before || message.from == member_rank(p);
    if (!from_before || sender >= parts_.workers())
      fail("rank {} passed on a message that is not for this server", message.from);
    message.from = sender;
    message.head.kind = kind_of(message.head.kind);
  }
  if (is_lost(lost_, place_.position)) {  // whoever has not heard of it yet does so now
    if (message.head.kind != MessageType::lost) tell_lost(message.from);
    return false;
  }
  if (message.head.kind == MessageType::lost) {
    learn_of_lost(message.head.clock);
    return false;
  }
  const bool flushes = (message.head.kind & ~again) == flush;
  if (place_.dies_at >= 0 && !flushes && slices_.front().version >= place_.dies_at) {
    lose_state();
    return false;
  }
  pass_on(message, flushes);
  return true;
}

void ServerShard::pass_on(const Message& message, bool flushes) {
  const int next = next_member();
  if (next == place_.replicas) return;
  MessageHeader head = message.head;
  head.kind = passed_on(message.head.kind, message.from);
  head.tag = chain_tag(next);
  parts_.mailbox->post(member_rank(next), head, message.payload());
  if (next == last_member(lost_, place_.replicas)) return;  // nobody is behind it to whom it would have to go again
  const std::size_t slice = flushes ? slices_.size() : std::min(message.head.key - first_, slices_.size());
  passed_.keep(static_cast<std::size_t>(message.from) * (slices_.size() + 1) + slice, head, message.payload());
}

// Another member is lost. If this one passed messages on to it, the next one gets those that it may have had alone.
void ServerShard::learn_of_lost(LostMembers lost) {
  if (lost < 0 || lost >= member_bit(place_.replicas) || is_lost(lost, place_.position))
    fail("a worker says that members {:#b} of the chain of {} are lost, but number {} is at work", lost,
         place_.replicas, place_.position);
  if ((lost_ | lost) == lost_) return;
  const int before = next_member();
  lost_ |= lost;
  const int next = next_member();
  if (next == place_.replicas) return;
  if (next != before)
    for (const PassedMessages::Kept* kept : passed_.in_order()) {
      MessageHeader head = kept->head;
      head.tag = chain_tag(next);
      parts_.mailbox->post(member_rank(next), head, kept->bytes);
    }
  parts_.mailbox->post(member_rank(next), {.kind = passed_on(MessageType::lost, parts_.rank()),
                                           .tag = chain_tag(next),
                                           .key = static_cast<std::uint32_t>(first_),
                                           .clock = lost_});
}

// A worker sends what had no answer again when a server is lost.
bool ServerShard::was_seen(const Slice& s, const Message& message) const {
  if (place_.replicas == 1) return false;
  const auto from = static_cast<std::size_t>(message.from);
  return (message.head.kind == await ? s.awaited : s.clocks)[from] > message.head.clock;
}

// As a crash of this server would: all that it knows is gone, and those who write to it find out. The worker beside it
// lives on.
void ServerShard::lose_state() {
  lost_ |= member_bit(place_.position);
  for (Slice& s : slices_)
    for (const StateSpan& state : s.shared->state()) std::ranges::fill(state.bytes, std::byte{0xFF});
  passed_ = {};
  for (const Address& a : writers_) tell_lost(a.rank);
}

void ServerShard::tell_lost(Rank writer) {
  parts_.mailbox->post(writer, {.kind = MessageType::lost,
                                .tag = static_cast<std::uint16_t>(reply_tag_[static_cast<std::size_t>(writer)]),
                                .key = static_cast<std::uint32_t>(first_),
                                .clock = lost_});
}

}  // namespace echelon::exchanges
