// How a worker of parameter servers pushes: merged, filtered, the most significant first, and again to the
// rest of the chain when a server has lost its state.

#include "parallel/server/client.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "parallel/rules/common.h"

namespace echelon::exchanges {

// The slices that matter most, as many as there is room for; the others add up. A slice's push has the mean of its
// gradients, weighted by their rates, and the sum of the rates.
void ServerClient::push_most_significant(const StepInfo& info, bool asks) {
  const double rate = info.lr * info.share;
  const std::span<const float> weights = parts_.view().weights;
  for (std::size_t k = 0; k < keys_.size(); ++k) {
    const Range range = keys_[k].range;
    const std::span<float> out = contribution_.as<float>().first(range.count());
    worker_->contribute(range, rate, out);
    const std::span<float> pending = pending_.as<float>().subspan(range.begin, range.count());
    float change = 0, size = 1e-12f;
    for (std::size_t i = 0; i < out.size(); ++i) {
      pending[i] += out[i];
      change += std::abs(pending[i]), size += std::abs(weights[range.begin + i]);
    }
    pending_rate_[k] += rate;
    const float share = change / size;
    significance_[k] = std::isfinite(share) ? share : std::numeric_limits<float>::max();  // it is compared
  }
  const std::vector<std::uint32_t>& chosen = budget_->choose(significance_);
  for (const std::uint32_t k : chosen) push_key(k, info, asks);
  ++pushes_;
  if (!asks) return;
  for (std::uint32_t k = 0; k < keys_.size(); ++k)
    if (std::ranges::find(chosen, k) == chosen.end()) post_push(k, {.kind = await, .key = k, .clock = info.clock}, {});
}

void ServerClient::push_pending(const StepInfo& info) {
  for (std::uint32_t k = 0; k < keys_.size(); ++k)
    if (pending_rate_[k] > 0) push_key(k, info, false);
}

// The mean of the merged gradients, weighted by their rates, is one push with the sum of the rates: it moves the model
// as far as its steps would have.
void ServerClient::merge(const StepInfo& info) {
  const double rate = info.lr * info.share;
  for (const Key& key : keys_) {
    const std::span<float> out = contribution_.as<float>().first(key.range.count());
    worker_->contribute(key.range, rate, out);
    kernels::add_into(merged_.as<float>().data() + key.range.begin, out.data(), out.size());
  }
  merged_rate_ += rate;
}

void ServerClient::push_all(const StepInfo& info, bool asks) {
  for (std::uint32_t k = 0; k < keys_.size(); ++k) push_key(k, info, asks);
  ++pushes_;
  if (parts_.when.n_push > 1) std::ranges::fill(merged_.as<float>(), 0.0f), merged_rate_ = 0;
}

// Of a key that is pushed as it is; good until the next.
std::span<const float> ServerClient::contribution(std::uint32_t k, double share) {
  if (factors_) return factors_->message(k, *worker_);
  const std::span<float> out = contribution_.as<float>().first(keys_[k].range.count());
  worker_->contribute(keys_[k].range, share, out);
  return out;
}

void ServerClient::push_key(std::uint32_t k, const StepInfo& info, bool asks) {
  const Key& key = keys_[k];
  const std::span<float> out = contribution_.as<float>().first(key.range.count());
  const double share = gradients() ? info.share : 1;
  std::span<const float> numbers = out;
  MessageHeader head{.kind = static_cast<std::uint16_t>(asks ? push_answer : push),
                     .tag = static_cast<std::uint16_t>(gates_[k].tag),
                     .key = k};
  if (parts_.sync.in_rounds()) {
    numbers = contribution(k, share);
    head.clock = round_, head.number = share, head.second = std::bit_cast<std::uint64_t>(info.lr);
  } else {
    head.clock = info.clock, head.number = gradients() ? info.lr * share : info.share;
    head.second =
        static_cast<std::uint64_t>(version_[k] + (budget_ ? 0 : pushes_ - own_in_[k]));  // it has seen its own
    if (budget_) {
      head.number = pending_rate_[k];
      const std::span<float> pending = pending_.as<float>().subspan(key.range.begin, key.range.count());
      const auto scale = static_cast<float>(pending_rate_[k] > 0 ? 1 / pending_rate_[k] : 0);
      kernels::scale(out.data(), pending.data(), scale, out.size());
      std::ranges::fill(pending, 0.0f), pending_rate_[k] = 0;
    } else if (parts_.when.n_push > 1) {
      head.number = merged_rate_;
      const auto scale = static_cast<float>(merged_rate_ > 0 ? 1 / merged_rate_ : 0);
      kernels::scale(out.data(), merged_.as<float>().data() + key.range.begin, scale, out.size());
    } else {
      numbers = contribution(k, 1);
    }
  }
  std::span<const std::byte> bytes = std::as_bytes(numbers);
  if (encoders_[k]) {
    const CodecStep step{.number = pushes_, .epoch = info.epoch, .random = parts_.random("codec", info.clock, k)};
    bytes = bytes_.as<std::byte>().first(encoders_[k]->encode(out, step, bytes_.as<std::byte>()));
  }
  if (!filters_.empty())
    bytes = filters_[k].write(out, parts_.view().weights.subspan(key.range.begin, key.range.count()),
                              parts_.sync.in_rounds() ? info.lr : head.number, parts_.random("filter", info.clock, k));
  post_push(k, head, bytes);
}

// A push, or an `await` in its place.
void ServerClient::post_push(std::uint32_t k, const MessageHeader& head, std::span<const std::byte> bytes) {
  if (!unanswered_.empty()) {
    const std::int64_t next = head.clock + 1;
    unanswered_[k].keep(head, bytes, head.kind == await ? must_have_seen(parts_.sync, next) : next);
  }
  const Address to = gate(k);
  MessageHeader addressed = head;
  addressed.tag = static_cast<std::uint16_t>(to.tag);
  parts_.mailbox->post(to.rank, addressed, bytes);
}

// A member of a chain has lost its state. The first one that is left hears of it, and then (server_chain.h) gets again
// what was not answered; what says that nothing follows goes last.
void ServerClient::go_on_without(const Message& message) {
  if (message.head.key >= keys_.size() || unanswered_.empty())
    fail("rank {} says that it has lost key {}, which has no replicas", message.from, message.head.key);
  const Rank head = keys_[message.head.key].server;
  const LostMembers before = lost_servers_[message.head.key], now = before | message.head.clock;
  if (now == before) return;
  const int first = member_after(now, -1, settings_.replicas), last = last_member(now, settings_.replicas);
  if (last < 0) fail("all replicas of the server on rank {} are lost", head);
  const bool first_lost = first != member_after(before, -1, settings_.replicas);
  const bool last_lost = last != last_member(before, settings_.replicas);
  const auto post = [&](MessageHeader it, std::span<const std::byte> bytes = {}) {
    it.tag = chain_tag(first);
    parts_.mailbox->post(chain_rank(head, first, parts_.workers()), it, bytes);
  };
  const auto kind = [&](std::uint16_t it, const UnansweredPush& of) {
    return static_cast<std::uint16_t>(of.answer_lost ? it | again : it);
  };
  tell_of_lost(head, before, now);
  post({.kind = lost, .key = message.head.key, .clock = now});
  for (std::uint32_t k = 0; k < keys_.size(); ++k) {
    if (keys_[k].server != head) continue;
    lost_servers_[k] = now;
    unanswered_[k].answer_lost = unanswered_[k].answer_lost || last_lost;
    if (!unanswered_[k].waits || !(first_lost || last_lost)) continue;
    MessageHeader push = unanswered_[k].head;
    push.kind = kind(push.kind, unanswered_[k]);
    post(push, unanswered_[k].bytes);
  }
  for (std::uint32_t k = 0; k < keys_.size(); ++k)
    if (keys_[k].server == head && unanswered_[k].flushing && (first_lost || last_lost))
      post({.kind = kind(flush, unanswered_[k]), .key = k, .clock = unanswered_[k].flushes});
}

// One line in the log of the first rank, which people read, and in that of the rank where it has happened. Its step is
// the one whose messages are on their way (pushes_): the worker itself may already be at the next (server_overlap.cpp).
void ServerClient::tell_of_lost(Rank head, LostMembers before, LostMembers now) const {
  const int workers = parts_.workers(), replicas = settings_.replicas;
  for (const ServerSettings::Death& d : settings_.deaths) {
    const Rank where = chain_rank(head, d.position, workers);
    const bool is_news = is_lost(now, d.position) && !is_lost(before, d.position);
    if (!is_news || rank_of_server(settings_, d.server, workers) != head) continue;
    if (parts_.rank() != 0 && parts_.rank() != where) continue;
    const int first = member_after(now, -1, replicas), last = last_member(now, replicas);
    int other = first;
    const char* does = "takes over";
    if (d.position > last)
      other = last, does = "answers from now on";
    else if (d.position > first)
      other = last_member(now, d.position), does = "passes messages on past it";
    parts_.team->say(
        fmt::format("server {0}.{1} on rank {2} has lost its state after {3} updates, as exchange.kill_server says "
                    "(step {4} of this rank): {0}.{5} on rank {6} {7}",
                    d.server, d.position, where, d.at, pushes_, other, chain_rank(head, other, workers), does));
  }
}

// All that this worker has sent to the server before is merged, and needs no answer any more.
bool ServerClient::is_flushed(const Message& message) {
  UnansweredPush& flushed_key = unanswered_[message.head.key];
  if (!flushed_key.flushing || flushed_key.flushes != message.head.clock) return false;  // a second answer
  flushed_key.flushing = false;
  for (std::size_t k = 0; k < keys_.size(); ++k)
    if (keys_[k].server == keys_[message.head.key].server) unanswered_[k].waits = false;
  return true;
}

}  // namespace echelon::exchanges
