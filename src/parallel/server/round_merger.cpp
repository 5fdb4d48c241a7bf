// Rounds: contributions to a key that are added up and merged together. When the round is complete (Sync::needed),
// every worker that has contributed is answered. A contribution that comes too late for its round is dropped, and its
// worker is sent the present answer.
//
// If the sync does not wait for all workers, the keys of a model may close their rounds with different workers, and a
// worker that was late goes on with the newest round that any key told it. So a contribution may be early at a key that
// has not come so far; it is kept until its round is open. A worker whose contribution is early, or that has left, does
// not take part in the open round: it counts as one that is not waited for.

#include <algorithm>
#include <bit>
#include <optional>

#include "kernels/vector.h"
#include "parallel/server/merger.h"

namespace echelon::exchanges {

namespace {

struct Round {  // of one key
  std::int64_t number = 0;
  Buffer sum;
  double shares = 0;  // of the contributions in the sum
  double lr = 0;
  std::size_t came = 0;
  std::size_t added = 0;                        // of those, so many are in the sum
  std::vector<std::optional<Message>> waiting;  // by writer: came, but are not in the sum yet
  std::size_t turn = 0;                         // the writer whose contribution is added next
  std::vector<char> unanswered;                 // by writer: it has contributed and waits for the answer
  bool held = false;                            // complete, but others are to be answered first
  std::vector<Message> early;                   // contributions to later rounds
  std::vector<std::byte> last_answer;           // encoded: for workers that are late, or have lost their answer
};

class RoundMerger : public Merger {
 public:
  RoundMerger(const MergerParts& parts, std::vector<std::size_t> order);

  void take(ShardKey& key, Message& message, bool seen) override;
  void check_waiting() override {
    for (ShardKey& key : core_.keys) close_rounds(key);
  }
  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    for (ShardKey& key : core_.keys)
      all.push_back(as_state(fmt::format("round of {}", key.number), round_of(key).number));
    return all;
  }

 private:
  Round& round_of(const ShardKey& key) { return rounds_[key.number - core_.first()]; }
  void answer_late(ShardKey& key, const Message& message, bool seen);
  void join(ShardKey& key, Message& message);
  void add(ShardKey& key, const Message& message);
  void add_next(ShardKey& key);
  void close_rounds(ShardKey& key);
  void close(ShardKey& key);
  void answer_in_order(ShardKey& key);
  void answer_all(ShardKey& key);
  void tell_to_hand_in(std::int64_t round, Rank first);

  ShardCore& core_;
  ShardReplication& replication_;
  AnswerSender& answers_;
  SyncTraits sync_;
  std::size_t needed_;
  std::vector<Round> rounds_;  // by key
  std::vector<std::size_t> order_;
  std::size_t next_answer_ = 0;  // in `order_`
};

RoundMerger::RoundMerger(const MergerParts& parts, std::vector<std::size_t> order)
    : core_(parts.core),
      replication_(parts.replication),
      answers_(parts.answers),
      sync_(core_.parts.sync->traits()),
      needed_(static_cast<std::size_t>(core_.parts.sync->needed(static_cast<int>(core_.writers.size())))),
      order_(std::move(order)) {
  for (const ShardKey& key : core_.keys) {
    Round& round = rounds_.emplace_back();
    round.sum = Buffer(key.range.count() * sizeof(float));
    round.waiting.resize(core_.writers.size());
    round.unanswered.resize(core_.writers.size());
  }
}

void RoundMerger::take(ShardKey& key, Message& message, bool seen) {
  if (message.head.kind != push && message.head.kind != push_answer)
    fail(
        "rank {} asks for key {} without a contribution (message of type {}), and in rounds only contributions are "
        "answered",
        message.from, key.number, message.head.kind);
  Round& round = round_of(key);
  if (message.head.clock < round.number) return answer_late(key, message, seen);
  const bool waits = std::ranges::find(round.early, message.from, &Message::from) != round.early.end();
  if (seen || waits) return;  // it will be answered with its round
  if (message.head.clock > round.number)
    round.early.push_back(std::move(message));
  else
    join(key, message);
  close_rounds(key);
}

// Its round was closed without it, or with it but the answer was lost.
void RoundMerger::answer_late(ShardKey& key, const Message& message, bool seen) {
  const Round& round = round_of(key);
  core_.counts.dropped += seen ? 0 : 1;
  std::int64_t& clock = key.clocks[static_cast<std::size_t>(message.from)];
  clock = std::max(clock, message.head.clock + 1);
  answers_.send(key, message.from, round.number,
                round.last_answer.empty() ? std::as_bytes(key.shared->answer()) : round.last_answer);
}

// Contributions are added in the order of the writers, so that the sum does not depend on which came first.
void RoundMerger::join(ShardKey& key, Message& message) {
  Round& round = round_of(key);
  const Rank from = message.from;
  const std::size_t writer = core_.writers.index_of(from);
  if (writer == core_.writers.size()) fail("rank {} contributed to key {}, but does not write to it", from, key.number);
  round.unanswered[writer] = 1;
  key.clocks[static_cast<std::size_t>(from)] = message.head.clock + 1;
  core_.counts.contributions += 1;
  ++round.came;
  round.waiting[writer].emplace(std::move(message));
  for (; round.turn < round.waiting.size() && round.waiting[round.turn]; ++round.turn) add_next(key);
  if (round.came == 1 && sync_.hands_in_early && key.number == 0) tell_to_hand_in(round.number, from);
}

void RoundMerger::add_next(ShardKey& key) {
  Round& round = round_of(key);
  std::optional<Message>& message = round.waiting[round.turn];
  if (!message) return;
  add(key, *message);
  message.reset();
}

void RoundMerger::add(ShardKey& key, const Message& message) {
  Round& round = round_of(key);
  const std::span<float> sum = round.sum.as<float>();
  if (round.added++ == 0) std::ranges::fill(sum, 0.0f), round.shares = 0;
  key.decoder->add(message, sum);
  round.shares += message.head.number;
  round.lr = std::bit_cast<double>(message.head.second);
}

// The first worker has finished its part: the others are to hand in what they have. One key's server says so for all.
void RoundMerger::tell_to_hand_in(std::int64_t round, Rank first) {
  for (const Address& a : core_.writers.list())
    if (a.rank != first)
      core_.parts.mailbox->post(a.rank, {.kind = hand_in, .tag = static_cast<std::uint16_t>(a.tag), .clock = round});
}

void RoundMerger::close_rounds(ShardKey& key) {
  Round& round = round_of(key);
  while (round.came > 0 || !round.early.empty()) {
    if (round.came + round.early.size() + core_.writers.count_gone() < needed_) return;
    if (round.came > 0)
      close(key);
    else
      round.number =
          std::ranges::min_element(round.early, {}, [](const Message& m) { return m.head.clock; })->head.clock;
    for (std::size_t i = 0; i < round.early.size();) {
      if (round.early[i].head.clock > round.number) {
        ++i;
        continue;
      }
      Message message = std::move(round.early[i]);
      round.early.erase(round.early.begin() + static_cast<std::ptrdiff_t>(i));
      join(key, message);
    }
  }
}

void RoundMerger::close(ShardKey& key) {
  Round& round = round_of(key);
  for (; round.turn < round.waiting.size(); ++round.turn) add_next(key);  // past those that do not take part
  round.turn = round.added = 0;
  const std::span<float> sum = round.sum.as<float>();
  if (round.shares > 0) kernels::scale(sum.data(), sum.data(), static_cast<float>(1 / round.shares), sum.size());
  key.shared->conclude(sum, round.lr);
  round.came = 0;
  ++round.number;
  ++key.version;
  core_.counts.updates += 1;
  order_.empty() ? answer_all(key) : answer_in_order(key);
}

// Answers leave in the given order of the keys: this one may have to wait for others.
void RoundMerger::answer_in_order(ShardKey& key) {
  round_of(key).held = true;
  while (rounds_[order_[next_answer_]].held) {
    const std::size_t next = order_[next_answer_];
    rounds_[next].held = false;
    answer_all(core_.keys[next]);
    next_answer_ = (next_answer_ + 1) % order_.size();
  }
}

void RoundMerger::answer_all(ShardKey& key) {
  Round& round = round_of(key);
  const std::span<const std::byte> bytes = answers_.encoded(key);
  if (key.answer_codec && (sync_.leaves_out || replication_.repeats_answers()))
    round.last_answer.assign(bytes.begin(), bytes.end());
  for (std::size_t w = 0; w < round.unanswered.size(); ++w)
    if (std::exchange(round.unanswered[w], 0)) answers_.send(key, core_.writers.list()[w].rank, round.number, bytes);
}

}  // namespace

std::unique_ptr<Merger> make_round_merger(const MergerParts& parts, std::vector<std::size_t> order) {
  return std::make_unique<RoundMerger>(parts, std::move(order));
}

}  // namespace echelon::exchanges
