#include "parallel/planned/stage_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "graph/op.h"
#include "world/channels.h"

namespace echelon {

StageMessages::StageMessages(Group& group, const PlanLayout& layout, const std::vector<StageMessage>& messages)
    : world_(group.world()),
      layout_(layout),
      replica_(layout.replica_of(world_.rank())),
      allocated_(buffer_bytes(layout, messages)),
      wait_policy_(world_, group.wait_policy().options()),
      lines_(static_cast<std::size_t>(layout.lines())) {
  free_ = group.allocate(allocated_);
  prepare(messages);
}

namespace {

// The buffers of a message: between two stages of one rank, one for each micro-batch.
int buffers_on(const PlanLayout& layout, const StageMessage& m, int line) {
  const bool local = layout.rank_of(0, line, m.from, m.from_part) == layout.rank_of(0, line, m.to, m.to_part);
  if (local) return layout.plan().alternating > 0 ? buffers_of(m) : layout.shards();
  int per_update = 1;
  for (int r = 0; r < layout.plan().data; ++r) per_update = std::max(per_update, layout.schedule(r).per_update);
  return buffers_of(m) * per_update;
}

}  // namespace

std::size_t StageMessages::buffer_bytes(const PlanLayout& layout, const std::vector<StageMessage>& messages) {
  std::vector<std::size_t> of_rank(static_cast<std::size_t>(layout.ranks_of_replica()), 0);
  for (int line = 0; line < layout.lines(); ++line)
    for (const StageMessage& m : messages)
      of_rank[static_cast<std::size_t>(layout.place_of(layout.rank_of(0, line, m.from, m.from_part)))] +=
          aligned(static_cast<std::size_t>(m.bytes)) * static_cast<std::size_t>(buffers_on(layout, m, line));
  return *std::ranges::max_element(of_rank);
}

void StageMessages::prepare(const std::vector<StageMessage>& messages) {
  for (std::size_t l = 0; l < lines_.size(); ++l) {
    auto& outgoing = lines_[l].outgoing;
    outgoing.resize(std::max(outgoing.size(), messages.size()));
    for (std::size_t k = 0; k < messages.size(); ++k) {
      const StageMessage& m = messages[k];
      if (layout_.rank_of(replica_, static_cast<int>(l), m.from, m.from_part) != world_.rank()) continue;
      auto& slots = outgoing[k].slots;
      auto bytes = static_cast<std::size_t>(m.bytes);  // and of what the same number means for other sizes
      for (const Outgoing::Slot& s : slots) bytes = std::max(bytes, s.memory.size());
      const auto count = static_cast<std::size_t>(buffers_on(layout_, m, static_cast<int>(l)));
      while (slots.size() < count) slots.emplace_back();
      for (Outgoing::Slot& s : slots) {
        if (s.memory.size() >= bytes) continue;
        if (free_.size() >= aligned(bytes)) {
          s.memory = free_.first(bytes);
          free_ = free_.subspan(aligned(bytes));
        } else {
          if (!s.work.done()) s.work.wait(world_.now() + wait_policy_.options().limit);
          s.own = Buffer(bytes);
          s.memory = s.own.as<std::byte>();
          allocated_ += bytes;
        }
      }
    }
  }
}

Rank StageMessages::rank_of(int stage, int part, const StepContext& step) const {
  return layout_.rank_of(replica_, layout_.line_of(static_cast<int>(step.shard)), stage, part);
}

Label StageMessages::label(int message, const StepContext& step) const {
  return {.step = static_cast<std::uint16_t>(message),
          .number = step.step * static_cast<std::uint32_t>(layout_.shards()) + step.shard};
}

Channel StageMessages::channel(int message, const StepContext& step) const {
  return first_stage_channel + static_cast<Channel>(message * layout_.lines() + layout_.line_of(int(step.shard)));
}

void StageMessages::wait(Work& work, Rank peer, int stage, int part, const StepContext& step, const Label& label) {
  const auto end =
      layout_.parts() == 1
          ? fmt::format_to_n(name_.data(), name_.size(), "stage {}, micro-batch {}", stage, step.shard)
          : fmt::format_to_n(name_.data(), name_.size(), "stage {} part {}, micro-batch {}", stage, part, step.shard);
  // Ranks of a split model know the one they wait for by what it computes.
  wait_policy_.begin(label, {name_.data(), std::min(end.size, name_.size())}, WaitPolicy::NameOf::peer);
  wait_policy_.wait(work, peer);
  wait_policy_.end();
}

// A number means another message for micro-batches of another size, so what stays on a rank cannot be taken in the
// order in which it was put there if an epoch's last batch has micro-batches of two sizes.
bool StageMessages::by_micro_batch(const Outgoing& out) const {
  return out.slots.size() >= static_cast<std::size_t>(layout_.shards());
}

void StageMessages::send(int message, const StepContext& step, std::span<const std::byte> bytes) {
  const StageMessage& m = (*messages_)[static_cast<std::size_t>(message)];
  Outgoing& out = line_of(step).outgoing[static_cast<std::size_t>(message)];
  Outgoing::Slot& slot = out.slots[by_micro_batch(out) ? step.shard : out.next++ % out.slots.size()];
  const Label what = label(message, step);
  if (!slot.work.done()) wait(slot.work, slot.to, m.to, m.to_part, step, what);
  std::memcpy(slot.memory.data(), bytes.data(), bytes.size());
  slot.to = rank_of(m.to, m.to_part, step);
  if (slot.to == world_.rank()) return;
  sent_ += static_cast<double>(bytes.size());
  slot.work = world_.send(slot.to, channel(message, step), what, slot.memory.first(bytes.size()));
}

void StageMessages::receive(int message, const StepContext& step, std::span<std::byte> into) {
  const StageMessage& m = (*messages_)[static_cast<std::size_t>(message)];
  const Rank from = rank_of(m.from, m.from_part, step);
  if (from == world_.rank()) {
    Outgoing& out = line_of(step).outgoing[static_cast<std::size_t>(message)];
    const std::size_t slot = by_micro_batch(out) ? step.shard : out.taken++ % out.slots.size();
    std::memcpy(into.data(), out.slots[slot].memory.data(), into.size());
    return;
  }
  const Label what = label(message, step);
  Work work = world_.receive(from, channel(message, step), what, into);
  wait(work, from, m.from, m.from_part, step, what);
}

void StageMessages::drain() {
  for (Line& line : lines_)
    for (Outgoing& out : line.outgoing)
      for (Outgoing::Slot& slot : out.slots)
        if (!slot.work.done()) {
          wait_policy_.begin({}, "that the next stage takes");
          wait_policy_.wait(slot.work, slot.to);
          wait_policy_.end();
        }
}

}  // namespace echelon
