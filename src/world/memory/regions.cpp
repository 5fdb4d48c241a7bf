#include "world/memory/regions.h"

#include <string>

#include "base/error.h"

namespace echelon {

namespace {

// Everybody counts up; the last of a round opens the next one.
struct BarrierMemory {
  alignas(64) std::atomic<std::uint32_t> arrived;  // in all rounds so far
  alignas(64) std::atomic<std::uint32_t> round;
  alignas(64) Bell bell;
};

class Barrier : public SharedBarrier {
 public:
  // Nobody can have gone further than the round that we have not yet joined, so this is where the others are, too.
  Barrier(Segment& segment, std::string name, BarrierMemory& memory, int parties)
      : segment_(segment),
        name_(std::move(name)),
        memory_(memory),
        parties_(static_cast<std::uint32_t>(parties)),
        manners_(manners_for(parties)),
        round_(memory.round.load(std::memory_order_acquire)) {}

  bool wait(double deadline) override {
    if (!here_) {
      ++round_;
      if (memory_.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == round_ * parties_) {
        memory_.round.store(round_, std::memory_order_seq_cst);
        memory_.bell.ring();
        if (segment_.fate().broken()) lost();
        return true;
      }
      here_ = true;
    }
    Patience patience(manners_, deadline);
    for (;;) {
      if (segment_.fate().broken()) lost();
      if (open()) {
        here_ = false;
        return true;
      }
      switch (patience.pause()) {
        case Patience::Advice::look_again: break;
        case Patience::Advice::too_late: return false;
        case Patience::Advice::sleep:  // at most a tenth of a second: nobody rings here when the world breaks
          memory_.bell.sleep(patience.seconds_to_sleep(), [&] { return open() || segment_.fate().broken(); });
      }
    }
  }

 private:
  bool open() const { return memory_.round.load(std::memory_order_seq_cst) == round_; }
  [[noreturn]] void lost() const { segment_.fate().throw_peer_lost("barrier `" + name_ + "`"); }

  Segment& segment_;
  const std::string name_;
  BarrierMemory& memory_;
  const std::uint32_t parties_;
  const Manners manners_;
  std::uint32_t round_;
  bool here_ = false;  // arrived in an earlier call, which came to its deadline
};

class Regions : public SharedMemory {
 public:
  explicit Regions(Segment& segment) : segment_(segment) {}

  std::span<std::byte> get(std::string_view name, std::size_t bytes) override { return segment_.region(name, bytes); }

  bool contains(std::span<const std::byte> bytes) const override {
    return segment_.reach() == Segment::Reach::process || segment_.contains(bytes);
  }

  std::unique_ptr<SharedBarrier> barrier(std::string_view name, int index, int parties) override {
    invariant(index >= 0 && index < parties, "a barrier's parties are numbered from 0");
    // The count of parties is part of the region's size, so that a wrong one is a Mismatch.
    const std::string region = fmt::format("barrier {}", name);
    auto memory = segment_.region(region, sizeof(BarrierMemory) + static_cast<std::size_t>(parties));
    auto& barrier = *std::launder(reinterpret_cast<BarrierMemory*>(memory.data()));
    return std::make_unique<Barrier>(segment_, std::string(name), barrier, parties);
  }

 private:
  Segment& segment_;
};

}  // namespace

std::unique_ptr<SharedMemory> make_shared_memory(Segment& segment) { return std::make_unique<Regions>(segment); }

}  // namespace echelon
