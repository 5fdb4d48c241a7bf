// A worker's side of a chain (chain.h): it keeps what was not answered, and sends it again to the first member that is
// left when a server has lost its state.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "parallel/server/chain.h"

namespace echelon::exchanges {

namespace {

// What a worker has sent for a key, a push or an `await`, until it is answered.
struct UnansweredPush {
  bool waits = false, flushing = false;
  bool answer_lost = false;  // perhaps: the last of the chain was lost meanwhile
  std::int64_t flushes = 0;  // so far: an answer to an earlier one may come twice
  MessageHeader head;
  std::vector<std::byte> bytes;
  std::int64_t enough = 0;  // what the answer must have seen at least: of the own pushes, or (`await`) of everybody's

  void keep(const MessageHeader& sent, std::span<const std::byte> payload, std::int64_t enough_for_it) {
    waits = true, answer_lost = false;
    head = sent;
    if (payload.data() != bytes.data()) bytes.assign(payload.begin(), payload.end());
    enough = enough_for_it;
  }
  bool is_answered_by(std::int64_t seen) {  // the same answer may come from two servers
    if (!waits || seen < enough) return false;
    waits = false;
    return true;
  }
};

class ChainWorker : public WorkerReplication {
 public:
  ChainWorker(const ServerSettings& settings, const ExchangeParts& parts, const ServerMap& map,
              const ParameterCopy& copy)
      : WorkerReplication(map),
        settings_(settings),
        parts_(parts),
        copy_(copy),
        in_rounds_(parts.sync->traits().in_rounds),
        unanswered_(map.keys.size()),
        lost_(map.keys.size()) {
    if (parts.workers() > most_chain_ranks) fail("replicated servers work for up to {} workers", most_chain_ranks);
  }

  Address push_to(std::uint32_t key) const override {  // the first member that is left
    const int position = member_after(lost_[key], -1, settings_.replicas);
    if (position == 0) return map_.push_to[key];
    return {chain_rank(map_.keys[key].server, position, parts_.workers()), chain_tag(position)};
  }
  Answerer answerer(std::uint32_t key) const override {
    const int last = last_member(lost_[key], settings_.replicas);
    return {chain_rank(map_.keys[key].server, last, parts_.workers()), last};
  }
  void posted(const MessageHeader& head, std::span<const std::byte> bytes) override {
    const std::int64_t next = head.clock + 1;
    unanswered_[head.key].keep(head, bytes, head.kind == await ? parts_.sync->must_have_seen(next) : next);
  }
  void flushing(MessageHeader& head) override {
    unanswered_[head.key].flushing = true;
    head.clock = ++unanswered_[head.key].flushes;
  }
  bool is_new_answer(const Message& message) override {
    UnansweredPush& push = unanswered_[message.head.key];
    const bool of_everybody = in_rounds_ || push.head.kind == await;
    return push.is_answered_by(of_everybody ? message.head.clock : static_cast<std::int64_t>(message.head.number));
  }
  // All that this worker has sent to the server before is merged, and needs no answer any more.
  bool is_new_flushed(const Message& message) override {
    UnansweredPush& flushed_key = unanswered_[message.head.key];
    if (!flushed_key.flushing || flushed_key.flushes != message.head.clock) return false;
    flushed_key.flushing = false;
    for (std::size_t k = 0; k < unanswered_.size(); ++k)
      if (map_.keys[k].server == map_.keys[message.head.key].server) unanswered_[k].waits = false;
    return true;
  }
  void server_lost(const Message& message) override;
  void learn_of_lost(Rank head, LostMembers now) override;
  std::vector<StateSpan> state() override { return {as_state("lost servers", lost_)}; }

 private:
  void require_one_left(Rank head, LostMembers now) const {
    if (last_member(now, settings_.replicas) < 0) fail("all replicas of the server on rank {} are lost", head);
  }
  void report(Rank head, LostMembers before, LostMembers now) const;

  const ServerSettings& settings_;
  const ExchangeParts& parts_;
  const ParameterCopy& copy_;
  bool in_rounds_;
  std::vector<UnansweredPush> unanswered_;  // by key
  std::vector<LostMembers> lost_;           // by key: members of its chain
};

// The first member that is left hears of it, and then gets again what was not answered; the flushes, which say that
// nothing follows, go last.
void ChainWorker::server_lost(const Message& message) {
  if (message.head.key >= map_.keys.size())
    fail("rank {} says that it has lost key {}, which does not exist", message.from, message.head.key);
  const Rank head = map_.keys[message.head.key].server;
  const int replicas = settings_.replicas;
  const LostMembers before = lost_[message.head.key], now = before | message.head.clock;
  if (now == before) return;
  require_one_left(head, now);
  const int first = member_after(now, -1, replicas), last = last_member(now, replicas);
  const bool first_lost = first != member_after(before, -1, replicas);
  const bool last_lost = last != last_member(before, replicas);
  const auto post = [&](MessageHeader it, std::span<const std::byte> bytes = {}) {
    it.tag = chain_tag(first);
    parts_.mailbox->post(chain_rank(head, first, parts_.workers()), it, bytes);
  };
  const auto kind = [&](std::uint16_t it, const UnansweredPush& of) {
    return static_cast<std::uint16_t>(of.answer_lost ? it | again : it);
  };
  report(head, before, now);
  post({.kind = lost, .key = message.head.key, .clock = now});
  for (std::uint32_t k = 0; k < map_.keys.size(); ++k) {
    if (map_.keys[k].server != head) continue;
    lost_[k] = now;
    unanswered_[k].answer_lost = unanswered_[k].answer_lost || last_lost;
    if (!unanswered_[k].waits || !(first_lost || last_lost)) continue;
    MessageHeader push = unanswered_[k].head;
    push.kind = kind(push.kind, unanswered_[k]);
    post(push, unanswered_[k].bytes);
  }
  for (std::uint32_t k = 0; k < map_.keys.size(); ++k)
    if (map_.keys[k].server == head && unanswered_[k].flushing && (first_lost || last_lost))
      post({.kind = kind(flush, unanswered_[k]), .key = k, .clock = unanswered_[k].flushes});
}

void ChainWorker::learn_of_lost(Rank head, LostMembers now) {
  require_one_left(head, now);
  bool is_new = false;
  for (std::size_t k = 0; k < lost_.size(); ++k) {
    if (map_.keys[k].server != head || lost_[k] == now) continue;
    if (!std::exchange(is_new, true)) report(head, lost_[k], now);
    lost_[k] = now;
  }
}

// One line in the log of the first rank, which people read, and in that of the rank where it has happened. Its step is
// the one whose messages are on their way: the worker itself may already be at the next (overlap.h).
void ChainWorker::report(Rank head, LostMembers before, LostMembers now) const {
  const int workers = parts_.workers(), replicas = settings_.replicas;
  int server = 0;
  while (rank_of_server(settings_, server, workers) != head) ++server;
  for (int p = 0; p < replicas; ++p) {
    const Rank where = chain_rank(head, p, workers);
    if (!is_lost(now, p) || is_lost(before, p) || (parts_.rank() != 0 && parts_.rank() != where)) continue;
    const auto played = std::ranges::find_if(
        settings_.deaths, [&](const ServerSettings::Death& d) { return d.server == server && d.position == p; });
    const int first = member_after(now, -1, replicas), last = last_member(now, replicas);
    int other = first;
    const char* does = "takes over";
    if (p > last)
      other = last, does = "answers from now on";
    else if (p > first)
      other = last_member(now, p), does = "passes messages on past it";
    parts_.team->say(fmt::format(
        "server {0}.{1} on rank {2} has lost its state{3} (step {4} of this rank): {0}.{5} on rank {6} {7}", server, p,
        where,
        played == settings_.deaths.end() ? " with its process"
                                         : fmt::format(" after {} updates, as exchange.kill_server says", played->at),
        copy_.pushes(), other, chain_rank(head, other, workers), does));
  }
}

}  // namespace

std::unique_ptr<WorkerReplication> make_chain_worker(const ServerSettings& settings, const ExchangeParts& parts,
                                                     const ServerMap& map, const ParameterCopy& copy) {
  return std::make_unique<ChainWorker>(settings, parts, map, copy);
}

}  // namespace echelon::exchanges
