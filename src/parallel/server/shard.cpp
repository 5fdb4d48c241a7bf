#include "parallel/server/shard.h"

#include <algorithm>

#include "parallel/server/chain.h"
#include "parallel/team/message_wait.h"

namespace echelon::exchanges {

namespace {
constexpr std::int64_t most_clock = std::int64_t{1} << 62;  // it comes from a wire, and is added to
}  // namespace

ServerShard::ServerShard(const ServerSettings& settings, const ExchangeParts& parts, const ServerMap& map, Range keys,
                         int position, ServerProcess* process)
    : core_{.parts = parts,
            .keys = {},
            .writers = Writers(map.writers, parts.workers()),
            .speeds = WorkerSpeeds(parts.workers()),
            .counts = {},
            .scratch = {},
            .bandwidth = map.bandwidth},
      tag_(chain_tag(position)) {
  make_keys(settings, map, keys);
  replication_ = make_shard_replication(settings, map, position, core_, [this] { merger_->check_waiting(); });
  answers_ = std::make_unique<AnswerSender>(core_, *replication_);
  const MergerParts merger{core_, *replication_, *answers_};
  const bool ordered = parts.order.same_everywhere;
  merger_ = parts.sync->traits().in_rounds
                ? make_round_merger(merger, ordered ? map.reading_order(keys) : std::vector<std::size_t>{})
                : make_arrival_merger(merger);
  task_ = parts.world->spawn(position == 0 ? "server" : "replica", [this, position, process] {
    serve_messages(*core_.parts.world, *core_.parts.mailbox, tag_, [this, position, process](Message& message) {
      if (!process || !process->pass_on(position, message)) take(message);
    });
  });
}

void ServerShard::take(Message& message) {
  const std::uint32_t key = message.head.key;
  handle(message);
  if (core_.has(key)) latecomer_ = latecomer_of(core_.key(key));
}

ServerShard::~ServerShard() {
  core_.parts.mailbox->shut(tag_);
  task_.reset();
}

void ServerShard::make_keys(const ServerSettings& settings, const ServerMap& map, Range keys) {
  const ExchangeParts& parts = core_.parts;
  const auto workers = static_cast<std::size_t>(parts.workers());
  const std::span<const Key> own = std::span(map.keys).subspan(keys.begin, keys.count());
  core_.scratch.numbers = Buffer(largest_key(own) * sizeof(float));
  for (std::size_t i = 0; i < own.size(); ++i) {
    ShardKey key{.number = static_cast<std::uint32_t>(keys.begin + i), .range = own[i].range};
    key.shared = parts.rule->make_shared(parts.place(key.range));
    key.decoder = make_push_decoder({settings, parts, key.range, core_.scratch});
    if (parts.codec) {
      key.answer_codec = parts.codec(parts.pieces(key.range));
      if (!encodes_answers(parts, *key.answer_codec)) key.answer_codec.reset();
    }
    key.clocks.assign(workers, 0), key.awaited.assign(workers, 0);
    core_.keys.push_back(std::move(key));
  }
}

void ServerShard::handle(Message& message) {
  const Delivery delivery = replication_->receive(message);
  if (!delivery.handle || (delivery.seen && !delivery.answer_again)) return;
  if (message.head.kind == flush) return handle_flush(message, delivery.seen);
  if (!core_.has(message.head.key))
    fail("rank {} wrote to key {}, which is not on this server", message.from, message.head.key);
  if (message.head.clock < 0 || message.head.clock > most_clock)
    fail("rank {} says that it is at step {}, which no worker reaches", message.from, message.head.clock);
  const bool pushes = message.head.kind == push || message.head.kind == push_answer;
  if (pushes && !delivery.seen) core_.writers.comes(message.from);
  merger_->take(core_.key(message.head.key), message, delivery.seen);
}

void ServerShard::handle_flush(const Message& message, bool seen) {
  const bool writes = core_.writers.index_of(message.from) < core_.writers.size();
  if (!seen) {
    if (writes) core_.writers.leaves(message.from);
    core_.speeds.leaves(message.from);
    merger_->check_waiting();
    if (writes) replication_->writer_left();
  }
  if (replication_->answers())
    core_.parts.mailbox->post(message.from, {.kind = flushed,
                                             .tag = core_.writers.reply_tag(message.from),
                                             .key = message.head.key,
                                             .clock = message.head.clock});
  if (core_.writers.all_gone()) core_.writers.all_come();  // they meet now, and all will be there when they go on
}

// A site that is behind; or whom the merger names; or the worker that has made the fewest steps.
Rank ServerShard::latecomer_of(const ShardKey& key) {
  if (replication_->holds_answers(key)) return replication_->latecomer();
  if (const Rank rank = merger_->latecomer(key); rank >= 0) return rank;
  const std::vector<Rank>& present = core_.writers.present();
  const auto slowest =
      std::ranges::min_element(present, {}, [&](Rank r) { return key.clocks[static_cast<std::size_t>(r)]; });
  return slowest == present.end() ? -1 : *slowest;
}

void ServerShard::read_model(std::span<float> out) const {
  for (const ShardKey& key : core_.keys)
    std::ranges::copy(key.shared->model(), out.begin() + static_cast<std::ptrdiff_t>(key.range.begin));
}

ServerCounts ServerShard::counts() const {
  ServerCounts counts = core_.counts;
  counts.moved = merger_->most_moved();
  for (const Address& a : core_.writers.list())
    counts.least_speed = std::min(counts.least_speed, core_.speeds.of(a.rank));
  return counts;
}

std::vector<StateSpan> ServerShard::state() {
  std::vector<StateSpan> all;
  for (ShardKey& key : core_.keys) {
    std::vector<StateSpan> own = key.shared->state();
    if (key.answer_codec) add_states(own, "answers ", key.answer_codec->state());
    add_states(own, "", key.decoder->state());
    own.push_back(as_state("version", key.version));
    own.push_back(as_state("clocks", key.clocks));
    add_states(all, fmt::format("server {} ", key.number), own);
  }
  add_states(all, "", merger_->state());
  add_states(all, "", replication_->state());
  add_states(all, "", core_.speeds.state());
  all.push_back(as_state("server counts", core_.counts));
  return all;
}

}  // namespace echelon::exchanges
