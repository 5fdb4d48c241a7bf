// The end of a round for a worker of parameter servers: everything on its way arrives, all meet; then the model can be
// read, and everything that has to be remembered.

#include "parallel/server/client.h"

#include <algorithm>
#include <array>
#include <limits>

#include "collective/collectives.h"
#include "collective/shard_sum.h"
#include "parallel/rules/common.h"
#include "parallel/server/sites.h"

namespace echelon::exchanges {

void ServerClient::flush_servers() {
  for (std::uint32_t k = 0; k < keys_.size(); ++k)
    if (k == 0 || keys_[k].server != keys_[k - 1].server) {
      const Address to = gate(k);
      MessageHeader head{.kind = flush, .tag = static_cast<std::uint16_t>(to.tag), .key = k};
      if (!unanswered_.empty()) unanswered_[k].flushing = true, head.clock = ++unanswered_[k].flushes;
      parts_.mailbox->post(to.rank, head), ++flushes_;
      flush_due_[k] = 1;
    }
  while (flushes_ > 0) take_next();
}

void ServerClient::leave() {
  if (overlap_) overlap_->last.wait(std::numeric_limits<double>::infinity());
  if (merged_rate_ > 0) push_all({.clock = pushes_ * parts_.when.n_push, .epoch = epoch_}, false);
  if (budget_) push_pending({.clock = steps_ - 1, .epoch = epoch_});
  flush_servers();
}

void ServerClient::drain() {
  agree_on_round();
  if (parts_.sync.kind == Sync::Kind::soft) wait_for_answers();  // all have come, or said that they will not
  if (!sites_.empty()) drain_sites();
  if (parts_.sync.kind == Sync::Kind::essp) {  // all are merged: what the servers sent then has come before this
    flush_servers();
    own_steps_.forget_before(std::numeric_limits<std::int64_t>::max());
    barrier(parts_.team->group(), "the end of a round");
  }
  Message message;
  while (parts_.mailbox->try_take(worker_tag, message)) take(message);
}

// Changes on their way between sites are there when a message that was posted after them is.
void ServerClient::drain_sites() {
  if (shards_[0])
    for (const Rank peer : shards_[0]->peers())
      parts_.mailbox->post(peer, {.kind = flush, .tag = server_tag, .key = 0}), ++flushes_;
  while (flushes_ > 0) take_next();
  barrier(parts_.team->group(), "the end of a round");
}

// Every range of the model once, from the first of its chain that still has it; with sites the mean over them.
void ServerClient::read_model(std::span<float> out) {
  std::ranges::fill(out, 0.0f);
  for (std::size_t p = 0; p < shards_.size(); ++p)
    if (shards_[p] && shards_[p]->has_the_model()) shards_[p]->read_model(out);
  const int copies = sites_.empty() ? 1 : std::ranges::max(sites_) + 1;
  if (copies > 1) kernels::scale(out.data(), out.data(), 1.0f / static_cast<float>(copies), out.size());
  if (parts_.workers() > 1) all_reduce_members(parts_.team->group(), out);  // zeros where somebody else has it
}

// Everybody is here; who was late for the last rounds hears of them.
void ServerClient::agree_on_round() {
  std::vector<double> rounds(static_cast<std::size_t>(parts_.workers()));
  rounds[static_cast<std::size_t>(parts_.rank())] = static_cast<double>(round_);
  parts_.team->all_gather_structs(std::span(rounds), std::vector<std::size_t>(rounds.size(), 1));
  round_ = static_cast<std::int64_t>(std::ranges::max(rounds));
  missed_ = 0;
}

std::vector<StateSpan> ServerClient::state() {
  std::vector<StateSpan> all;
  add_states(all, "worker ", worker_->state());
  for (std::size_t k = 0; k < keys_.size(); ++k)
    if (encoders_[k]) add_states(all, fmt::format("codec {} ", k), encoders_[k]->state());
  for (std::size_t p = 0; p < shards_.size(); ++p)
    if (shards_[p]) add_states(all, fmt::format("{} ", p), shards_[p]->state());
  for (std::size_t k = 0; k < filters_.size(); ++k) add_states(all, fmt::format("filter {} ", k), filters_[k].state());
  if (budget_) {
    all.push_back(as_state("pending", pending_));
    all.push_back(as_state("pending rates", pending_rate_));
    all.push_back(as_state("waits", budget_->waits()));
  }
  all.push_back(as_state("lost servers", lost_servers_));
  if (relay_) add_states(all, "", relay_->state());
  auto add = [&](const char* name, auto& value) { all.push_back(as_state(name, value)); };
  add("seen", seen_), add("version", version_);
  add("pushes", pushes_), add("steps", steps_), add("round", round_), add("warm", warm_);
  add("own in", own_in_);
  add("waited", waited_), add("parts done", parts_done_), add("parts", parts_count_), add("ages", ages_);
  add("pushed at", pushed_at_), add("out of order", out_of_order_);
  return all;
}

std::vector<Figure> ServerClient::figures() {
  ServerShard::Counts c;
  double least_speed = 1;
  for (const auto& shard : shards_) {
    if (!shard || !shard->has_the_model()) continue;
    c.add(shard->counts());
    least_speed = std::min(least_speed, shard->least_speed());
  }
  enum { updates, contributions, staleness, dropped, waited, done, parts, ages, unordered, lead, moved, speed, each };
  const std::array<double, each> own{c.updates,    c.contributions, c.staleness,   c.dropped, waited_, parts_done_,
                                     parts_count_, ages_,           out_of_order_, c.lead,    c.moved, least_speed};
  const auto ranks = static_cast<std::size_t>(parts_.workers());
  std::vector<double> all(ranks * each);
  std::ranges::copy(own, all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(parts_.rank()) * each));
  parts_.team->all_gather_structs(std::span(all), std::vector<std::size_t>(ranks, each));
  std::array<double, each> sum{}, most{}, least = own;
  for (std::size_t i = 0; i < all.size(); ++i) {
    sum[i % each] += all[i];
    most[i % each] = std::max(most[i % each], all[i]), least[i % each] = std::min(least[i % each], all[i]);
  }
  const auto keys = static_cast<double>(keys_.size());
  const Sync& sync = parts_.sync;
  std::vector<Figure> figures{{"updates", sum[updates] / keys}, {"seconds_waited", sum[waited]}};
  if (!sync.in_rounds()) {
    figures.emplace_back("mean_staleness", sum[contributions] > 0 ? sum[staleness] / sum[contributions] : 0);
    figures.emplace_back("least_speed", least[speed]);
  }
  if (overlap_ && overlap_->defers) figures.emplace_back("answers_out_of_order", sum[unordered]);
  if (sync.bounded()) {
    figures.emplace_back("mean_age", sum[parts] > 0 ? sum[ages] / sum[parts] : 0);
    figures.emplace_back("most_lead", most[lead]);
  }
  if (sync.kind == Sync::Kind::value) figures.emplace_back("most_moved", most[moved]);
  if (sync.kind == Sync::Kind::quorum) figures.emplace_back("dropped", sum[dropped] / keys);
  if (sync.kind == Sync::Kind::a_bsp) figures.emplace_back("part_done", sum[parts] > 0 ? sum[done] / sum[parts] : 1);
  return figures;
}

}  // namespace echelon::exchanges
