#include "collective/shared_memory/control_segment.h"

#include <fmt/format.h>

#include <string>

namespace echelon {

namespace {

std::uint64_t pack_label(const Label& label) {
  return std::uint64_t{static_cast<std::uint8_t>(label.kind)} << 40 | std::uint64_t{label.type} << 32 | label.number;
}

Label unpack_label(std::uint64_t word) {
  return {.kind = static_cast<OperationKind>(word >> 40 & 0xff),
          .type = static_cast<std::uint8_t>(word >> 32 & 0xff),
          .step = 0,
          .number = static_cast<std::uint32_t>(word)};
}

constexpr std::uint64_t between_operations = ~std::uint64_t{0};

}  // namespace

ControlSegment::ControlSegment(World& world, std::string_view name, std::shared_ptr<const Members> members, int index)
    : world_(world), members_(std::move(members)), index_(index) {
  SharedMemory& memory = *world.shared_memory();
  const auto bytes =
      memory.get(fmt::format("{}.entries", name), static_cast<std::size_t>(size()) * sizeof(MemberEntry));
  entries_ = {reinterpret_cast<MemberEntry*>(bytes.data()), static_cast<std::size_t>(size())};
  barrier_ = memory.barrier(fmt::format("{}.barrier", name), index, size());
}

void ControlSegment::announce(const Label& label, std::uint64_t count) {
  MemberEntry& entry = mine();
  entry.label.store(between_operations, std::memory_order_relaxed);
  entry.count.store(count, std::memory_order_release);  // who sees it sees that the label before it is over
  entry.label.store(pack_label(label), std::memory_order_release);
}

void ControlSegment::check_same_operation() const {
  const auto own_label = of(index_).label.load(std::memory_order_relaxed);
  const auto own_count = of(index_).count.load(std::memory_order_relaxed);
  for (int m = 0; m < size(); ++m) {
    const auto label = of(m).label.load(std::memory_order_acquire);
    const auto count = of(m).count.load(std::memory_order_acquire);
    if (label == own_label && count == own_count) continue;
    // A member at another number is early or late, not wrong. One that moves on meanwhile has another label by now.
    if (static_cast<std::uint32_t>(label) != static_cast<std::uint32_t>(own_label)) continue;
    if (of(m).label.load(std::memory_order_relaxed) != label) continue;
    throw Mismatch(fmt::format("rank {} is in {} with {} numbers, but rank {} is in {} with {}", world_.rank(),
                               to_string(unpack_label(own_label)), own_count, (*members_)[m],
                               to_string(unpack_label(label)), count));
  }
}

Rank ControlSegment::missing_rank() const {
  const auto own = of(index_).arrived.load(std::memory_order_relaxed);
  for (int m = 0; m < size(); ++m)
    if (of(m).arrived.load(std::memory_order_relaxed) < own) return (*members_)[m];
  return -1;
}

void ControlSegment::barrier(WaitPolicy& wait_policy) {
  MemberEntry& entry = mine();
  entry.arrived.store(entry.arrived.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  wait_policy.wait(*barrier_, [this] { return missing_rank(); });
}

}  // namespace echelon
