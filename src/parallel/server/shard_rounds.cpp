// A server's rounds: contributions that are added up and concluded together (bsp, quorum, a_bsp, soft).
//
// With a quorum the keys of a model may close their rounds with different workers, and a worker that was late goes on
// with the newest round that any of them told it. So a contribution may be early at a key that has not come so far; it
// is kept until the round is open. Who is early, or has left, will not come to the open round: it counts for the quorum
// of it, so that the others do not wait for ever.

#include <algorithm>
#include <bit>

#include "kernels/vector.h"
#include "parallel/server/shard.h"

namespace echelon::exchanges {

void ServerShard::join_round(Slice& s, std::uint32_t key, Message& message, bool seen) {
  const auto from = static_cast<std::size_t>(message.from);
  if (message.head.clock < s.round) {  // closed without it (too late), or with it, but the answer was lost
    counts_.dropped += seen ? 0 : 1;
    s.clocks[from] = std::max(s.clocks[from], message.head.clock + 1);
    return answer(s, key, message.from, s.last_answer.empty() ? std::as_bytes(s.shared->answer()) : s.last_answer);
  }
  const bool waits = std::ranges::find(s.early, message.from, &Message::from) != s.early.end();
  if (seen || waits) return;  // it will be answered with its round
  if (message.head.clock > s.round)
    s.early.push_back(std::move(message));
  else
    take_contribution(s, key, message);
  close_rounds(s, key);
}

// Everybody's takes its turn in the order of the writers, so that the sum does not depend on who came first.
void ServerShard::take_contribution(Slice& s, std::uint32_t key, Message& message) {
  const auto from = static_cast<std::size_t>(message.from);
  const Rank rank = message.from;
  s.wanted[from] = 0;
  s.clocks[from] = message.head.clock + 1;
  counts_.contributions += 1;
  ++s.came;
  const auto writer = std::ranges::find(writers_, rank, &Address::rank);
  if (writer == writers_.end()) fail("rank {} contributed to key {}, but does not write to it", rank, key);
  s.waiting[static_cast<std::size_t>(writer - writers_.begin())].emplace(std::move(message));
  for (; s.turn < s.waiting.size() && s.waiting[s.turn]; ++s.turn) add_in_turn(s, key);
  if (s.came == 1 && parts_.sync.kind == Sync::Kind::a_bsp && key == 0) tell_to_hand_in(s, rank);
}

void ServerShard::add_in_turn(Slice& s, std::uint32_t key) {
  std::optional<Message>& message = s.waiting[s.turn];
  if (!message) return;
  add(s, key, *message);
  message.reset();
}

void ServerShard::add(Slice& s, std::uint32_t key, const Message& message) {
  const std::span<float> sum = s.sum.as<float>();
  if (s.added++ == 0) std::ranges::fill(sum, 0.0f), s.shares = 0;
  const auto from = static_cast<std::size_t>(message.from);
  if (!s.filters.empty()) {
    const std::span<float> in = contribution_.as<float>().first(sum.size());
    s.filters[from].read(message.payload(), in);
    kernels::add_into(sum.data(), in.data(), sum.size());
  } else if (s.factors) {
    const std::span<float> in = contribution_.as<float>().first(sum.size());
    read_factors(s, message, in);
    kernels::add_into(sum.data(), in.data(), sum.size());
  } else if (s.decoder)
    s.decoder->add(message.payload(), 1, sum);
  else if (message.floats().size() == sum.size())
    kernels::add(sum.data(), sum.data(), message.floats().data(), sum.size());
  else
    fail("rank {} sent {} numbers for key {}, which has {}", message.from, message.floats().size(), key, sum.size());
  s.shares += message.head.number;
  s.lr = std::bit_cast<double>(message.head.second);
}

// The first has finished its part: the others are to hand in what they have. One server says so for all.
void ServerShard::tell_to_hand_in(const Slice& s, Rank first) {
  for (const Address& a : writers_)
    if (a.rank != first)
      parts_.mailbox->post(a.rank, {.kind = hand_in, .tag = static_cast<std::uint16_t>(a.tag), .clock = s.round});
}

void ServerShard::close_rounds(Slice& s, std::uint32_t key) {
  const auto enough = static_cast<std::size_t>(needed(parts_.sync, static_cast<int>(writers_.size())));
  const auto left = static_cast<std::size_t>(std::ranges::count(gone_, 1));
  while (s.came > 0 || !s.early.empty()) {
    if (static_cast<std::size_t>(s.came) + s.early.size() + left < enough) return;
    if (s.came > 0)
      conclude(s, key);
    else
      s.round = std::ranges::min_element(s.early, {}, [](const Message& l) { return l.head.clock; })->head.clock;
    for (std::size_t i = 0; i < s.early.size();) {
      if (s.early[i].head.clock > s.round) {
        ++i;
        continue;
      }
      Message message = std::move(s.early[i]);
      s.early.erase(s.early.begin() + static_cast<std::ptrdiff_t>(i));
      take_contribution(s, key, message);
    }
  }
}

void ServerShard::conclude(Slice& s, std::uint32_t key) {
  for (; s.turn < s.waiting.size(); ++s.turn) add_in_turn(s, key);  // somebody before them does not come
  s.turn = s.added = 0;
  const std::span<float> sum = s.sum.as<float>();
  if (s.shares > 0) kernels::scale(sum.data(), sum.data(), static_cast<float>(1 / s.shares), sum.size());
  s.shared->conclude(sum, s.lr);
  s.came = 0;
  ++s.round;
  ++s.version;
  counts_.updates += 1;
  if (place_.order.empty()) return answer_round(s, key);
  s.held = true;
  for (std::size_t k = place_.order[next_answer_]; slices_[k].held; k = place_.order[next_answer_]) {
    slices_[k].held = false;
    answer_round(slices_[k], static_cast<std::uint32_t>(first_ + k));
    next_answer_ = (next_answer_ + 1) % place_.order.size();
  }
}

void ServerShard::answer_round(Slice& s, std::uint32_t key) {
  const std::span<const std::byte> bytes = encoded_answer(s, key);
  if (s.answer_codec && (parts_.sync.kind == Sync::Kind::quorum || place_.replicas > 1))
    s.last_answer.assign(bytes.begin(), bytes.end());
  for (const Address& a : writers_) {
    std::int64_t& wanted = s.wanted[static_cast<std::size_t>(a.rank)];
    if (wanted < 0) continue;
    wanted = -1;
    answer(s, key, a.rank, bytes);
  }
}

}  // namespace echelon::exchanges
