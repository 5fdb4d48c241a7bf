#include "parallel/server/client.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "collective/collectives.h"
#include "collective/shard_sum.h"
#include "parallel/rules/common.h"
#include "parallel/server/chain.h"
#include "parallel/server/counts.h"

namespace echelon::exchanges {

ServerClient::ServerClient(const ServerSettings& settings, ExchangeParts parts)
    : settings_(settings),
      parts_(std::move(parts)),
      sync_(parts_.sync->traits()),
      map_(make_server_map(settings_, parts_)),
      codecs_(make_key_codecs(parts_, map_.keys)),
      worker_(parts_.rule->make_worker(parts_.view())),
      copy_(map_.keys.size()),
      replication_(make_worker_replication(settings_, parts_, map_, copy_)),
      inbox_({parts_, map_, *worker_, codecs_, copy_, *replication_}),
      pusher_({settings_, parts_, map_.keys, *worker_, codecs_, map_.bandwidth}, copy_, *replication_),
      servers_(settings_, parts_, map_) {
  inbox_.latecomer = [this](std::uint32_t key) { return servers_.latecomer(key, replication_->answerer(key)); };
  inbox_.on_answer = [this](std::uint32_t key, const MessageHeader& head) {
    if (overlap_) overlap_->answered(key);
    if (sync_.sends_unasked) redo_own_steps(key, static_cast<std::int64_t>(head.number));
  };
  if (parts_.workers() > 1 && parts_.order.is_early)
    overlap_ = std::make_unique<ServerOverlap>(parts_, map_, pusher_, inbox_);
}

void ServerClient::before_step(const StepInfo& info) {
  if (settings_.racing) parts_.trainer->hooks().race_rate = info.lr * info.share;
  pusher_.begin_step(info);
  if (parts_.when.warm_start > 0 && warm_ == 0) {  // the others begin with what the first worker has made
    if (parts_.rank() != 0) inbox_.wait_for_warm_start(parts_.when.warm_start);
    warm_ = 1;
  }
  if (sync_.sends_unasked) {
    inbox_.take_arrived();
    const std::int64_t needed = parts_.sync->must_have_seen(info.clock);
    if (parts_.order.by_magnitude) pusher_.ask_for_old(needed, info.clock);  // a server may have had no room for it
    inbox_.wait_until_seen(needed);
  }
  if (!overlap_) return;
  begin_asking(info);
  overlap_->begin(info, asks_);
}

void ServerClient::begin_asking(const StepInfo& info) {
  ++steps_;
  asks_ =
      parts_.sync->asks({.clock = info.clock, .seen = copy_.seen(), .fetch_due = steps_ % parts_.when.n_fetch == 0});
}

double ServerClient::exchange(const StepInfo& info) {
  if (!overlap_) begin_asking(info);
  epoch_ = info.epoch;
  counts_.steps += 1, counts_.done += info.done, counts_.age += static_cast<double>(info.clock - copy_.seen());
  missed_ = 0;
  if (parts_.sync->steps_without_answer() > 0) return exchange_softly(info);
  if (sync_.sends_unasked) own_steps_.begin(parts_.view().weights);
  if (settings_.cache) {  // answered after the worker's own step, which the answers have in them
    inbox_.expect_answers(pusher_.push_cached(info));
    return info.share;
  }
  const std::int64_t round = copy_.round();
  if (overlap_)
    overlap_->end();
  else
    push_and_wait(info);
  if (overlap_ && overlap_->defers()) return 0;  // the next forward waits for the answers
  if (asks_ && sync_.in_rounds) missed_ = copy_.round() - round - 1;
  if (parts_.rule->traits().local_step) return 1;
  return asks_ ? 0 : info.share;  // what it pushes, its own copy has to make too
}

void ServerClient::push_and_wait(const StepInfo& info) {
  pusher_.push_step(info, asks_);
  if (!asks_) return;
  inbox_.expect_answers();
  inbox_.wait_for_answers();
}

// A new contribution goes out when the last one is answered. The worker does not wait for that, unless it is late.
double ServerClient::exchange_softly(const StepInfo& info) {
  inbox_.take_arrived();
  if (inbox_.expects_answers() && info.clock - pushed_at_ < parts_.sync->steps_without_answer()) return 1;
  inbox_.wait_for_answers();
  pusher_.push_step(info, true);
  inbox_.expect_answers();
  pushed_at_ = info.clock;
  return 1;
}

void ServerClient::after_step(const StepInfo& info) {
  if (settings_.cache) inbox_.wait_for_answers();
  if (sync_.sends_unasked) own_steps_.end(info.clock, parts_.view().weights);
}

// Parameters that came unasked may miss this worker's last steps, from the step `own` on.
void ServerClient::redo_own_steps(std::uint32_t key, std::int64_t own) {
  const ReplicaView view = parts_.view();
  rules::for_each_weight(*view.segments, map_.keys[key].range, [&](std::size_t begin, std::size_t count) {
    own_steps_.redo(own, begin, count, view.weights);
  });
  own_steps_.forget_before(copy_.seen());
}

bool ServerClient::keep_going() {
  inbox_.take_arrived();
  return !inbox_.must_hand_in();
}

void ServerClient::leave() {
  if (overlap_) overlap_->finish();
  pusher_.push_left_over({.clock = steps_ - 1, .epoch = epoch_});
  inbox_.flush_servers();
}

void ServerClient::drain() {
  agree_on_round();
  if (parts_.sync->steps_without_answer() > 0) inbox_.wait_for_answers();  // everybody has contributed, or left
  if (replication_->models() > 1) {  // changes on their way between sites come before a message that follows them
    inbox_.flush(replication_->mirrors());
    barrier(parts_.team->group(), "the end of a round");
  }
  if (sync_.sends_unasked) {  // all pushes are merged: what the servers sent then comes before the answer to a flush
    inbox_.flush_servers();
    own_steps_.forget_before(std::numeric_limits<std::int64_t>::max());
    barrier(parts_.team->group(), "the end of a round");
  }
  inbox_.take_arrived();
  servers_.end_round();
  if (servers_.have_a_process()) agree_on_lost();
}

// A process may have died so late that not everybody has heard of it.
void ServerClient::agree_on_lost() {
  const int workers = parts_.workers();
  const auto lost = all_gather_struct(parts_.team->group(), servers_.lost(), "lost servers");
  std::vector<LostMembers> chains(static_cast<std::size_t>(workers));
  for (Rank head = 0; head < workers; ++head)
    for (int p = 0; p < settings_.replicas; ++p)
      chains[static_cast<std::size_t>(head)] |=
          lost[static_cast<std::size_t>(chain_rank(head, p, workers))] & member_bit(p);
  for (const Key& key : map_.keys)
    replication_->learn_of_lost(key.server, chains[static_cast<std::size_t>(key.server)]);
  servers_.learn_of_lost(chains);
}

// All workers are here; one that was late for the last rounds goes on with the newest.
void ServerClient::agree_on_round() {
  if (parts_.workers() > 1)
    copy_.reach_round(std::ranges::max(all_gather_struct(parts_.team->group(), copy_.round(), "rounds")));
  missed_ = 0;
}

// Every range of the model once, from the first of its chain that still has it; with sites the mean over them.
void ServerClient::read_model(std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  servers_.read_model(out);
  if (const int models = replication_->models(); models > 1)
    kernels::scale(out.data(), out.data(), 1.0f / static_cast<float>(models), out.size());
  if (parts_.workers() > 1) all_reduce_members(parts_.team->group(), out);  // zeros where somebody else has it
}

std::vector<StateSpan> ServerClient::state() {
  std::vector<StateSpan> all;
  add_states(all, "worker ", worker_->state());
  add_states(all, "", pusher_.state());
  add_states(all, "", copy_.state());
  add_states(all, "", replication_->state());
  add_states(all, "", servers_.state());
  auto add = [&](const char* name, auto& value) { all.push_back(as_state(name, value)); };
  add("steps", steps_), add("pushed at", pushed_at_), add("warm", warm_);
  add("counts", counts_), add("waited", inbox_.waited());
  if (overlap_) add("waited for pushes", overlap_->waited()), add("out of order", overlap_->out_of_order());
  return all;
}

std::vector<Figure> ServerClient::figures() {
  ServerCounts own = servers_.counts();
  add_counts(own, counts_);
  own.waited = inbox_.waited() + (overlap_ ? overlap_->waited() : 0);
  own.out_of_order = overlap_ ? overlap_->out_of_order() : 0;
  ServerCounts all = counts_of_all(parts_, own);
  all.keys = static_cast<double>(map_.keys.size());
  std::vector<Figure> figures = parts_.sync->figures(all);
  if (overlap_ && overlap_->defers()) figures.emplace_back("answers_out_of_order", all.out_of_order);
  if (servers_.have_a_process()) {
    double lost = 0;
    for (const LostMembers members : all_gather_struct(parts_.team->group(), servers_.lost(), "lost servers"))
      lost += std::popcount(static_cast<std::uint64_t>(members));
    figures.emplace_back("servers_lost", lost);
  }
  return figures;
}

}  // namespace echelon::exchanges
