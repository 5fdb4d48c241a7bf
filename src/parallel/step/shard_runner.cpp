#include "parallel/step/shard_runner.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace echelon {

void MicroBatchPlans::prepare(std::int64_t samples) {
  if (samples <= 0 || plans_.contains(samples)) return;
  plans_[samples] = std::make_unique<const Plan>(compile(make_(samples)));
}

CarryStore::CarryStore(const Graph& graph, int shards, const std::function<std::span<std::byte>(std::size_t)>& memory) {
  for (const auto& c : graph.carries()) bytes_per_shard_ += aligned(graph.type(c.from).bytes());
  if (!empty()) memory_ = memory(bytes_per_shard_ * static_cast<std::size_t>(shards));
}

CarryStore::CarryStore(const Graph& graph, int shards)
    : CarryStore(graph, shards, [this](std::size_t bytes) {
        own_ = Buffer(bytes);
        return own_.as<std::byte>();
      }) {}

void CarryStore::reset(int first, int last) {
  if (!empty()) std::ranges::fill(of(first, last), std::byte{});
}

std::span<std::byte> CarryStore::of(int first, int last) {
  return memory_.subspan(static_cast<std::size_t>(first) * bytes_per_shard_,
                         static_cast<std::size_t>(last - first) * bytes_per_shard_);
}

Executor& ShardRunner::executor(std::int64_t samples) {
  auto& slot = executors_[samples];
  if (!slot) {
    const Plan& plan = plans_.at(samples);
    if (arenas_->empty() || arenas_->back().bytes() < plan.memory.arena_bytes)
      arenas_->emplace_back(plan.memory.arena_bytes);
    Buffer& arena = arenas_->back();
    slot =
        std::make_unique<Executor>(plan, table_, parameters_, contributions_, std::span(arena.data(), arena.bytes()));
  }
  return *slot;
}

Executor& ShardRunner::load(const data::Batch& batch, const std::vector<data::Field>& fields, int shard,
                            CarryStore* carries) {
  const auto s = static_cast<std::uint64_t>(shard);
  Executor& e = executor(static_cast<std::int64_t>(batch.samples_of(s).count));
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const auto it = e.inputs().find(fields[f].name);
    if (it == e.inputs().end()) continue;
    const auto from = batch.field(s, f);
    invariant(from.size() >= it->second.size(), "a shard's field fills the graph's input");
    std::memcpy(it->second.data(), from.data(), it->second.size());
  }
  if (carries) {
    const std::span<const std::byte> kept = carries->of(shard);
    std::size_t at = 0;
    for (const auto& c : e.carries()) {
      invariant(at + c.from.size() <= kept.size(), "the store has room for what the largest micro-batch carries");
      std::memcpy(c.from.data(), kept.data() + at, c.from.size());
      at += aligned(c.from.size());
    }
  }
  return e;
}

Executor& ShardRunner::run(const data::Batch& batch, const std::vector<data::Field>& fields, const StepContext& step,
                           CarryStore* carries, const std::function<void(Executor&)>& execute) {
  const int shard = static_cast<int>(step.shard);
  Executor& e = load(batch, fields, shard, carries);
  if (execute)
    execute(e);
  else
    e.run(step);
  if (carries) {
    std::byte* at = carries->of(shard).data();
    for (const auto& c : e.carries()) {
      std::memcpy(at, c.to.data(), c.to.size());
      at += aligned(c.to.size());
    }
  }
  return e;
}

std::size_t ShardRunner::arena_bytes() const {
  std::size_t sum = 0;
  for (const Buffer& b : *arenas_) sum += b.bytes();
  return sum;
}

}  // namespace echelon
