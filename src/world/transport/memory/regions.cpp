#include "world/transport/memory/regions.h"

#include <new>
#include <string>

#include "base/error.h"

namespace echelon {

namespace {

// Each party writes the round that it has reached and reads those of the others: each cache line has one writer, so two
// parties need one transfer of a line each way (with a common counter it would be three).
struct BarrierMemory {
  struct alignas(64) Party {
    std::atomic<std::uint32_t> round;
    PublishedCore core;  // where it arrived
  };
  alignas(64) WakeUp wake_up;
  static std::size_t size(int parties) {
    return sizeof(BarrierMemory) + static_cast<std::size_t>(parties) * sizeof(Party);
  }
  Party* parties() { return std::launder(reinterpret_cast<Party*>(this + 1)); }
};

class Barrier : public SharedBarrier {
 public:
  Barrier(Segment& segment, std::string name, BarrierMemory& memory, int index, int parties)
      : segment_(segment),
        name_(std::move(name)),
        wake_up_(memory.wake_up),
        parties_(memory.parties(), static_cast<std::size_t>(parties)),
        core_(parties_[static_cast<std::size_t>(index)].core),
        mine_(parties_[static_cast<std::size_t>(index)].round),
        spin_policy_(spin_policy_for(parties)),
        round_(mine_.load(std::memory_order_relaxed)) {}

  bool wait(double deadline) override {
    if (!here_) {
      core_.publish();
      mine_.store(++round_, std::memory_order_seq_cst);
      seen_ = 0;
      if (all_are_here()) {  // this party may be the last one, for which the others sleep
        wake_up_.wake();
        if (segment_.failure().known()) lost();
        return true;
      }
      here_ = true;
    }
    SpinWait timeout(spin_policy_, deadline);
    for (;;) {
      if (segment_.failure().known()) lost();
      if (all_are_here()) {
        here_ = false;
        return true;
      }
      switch (timeout.pause(parties_[seen_].core, mover_)) {
        case SpinWait::Advice::look_again: break;
        case SpinWait::Advice::too_late: return false;
        case SpinWait::Advice::sleep:  // at most a tenth of a second: a failure wakes nobody here
          wake_up_.sleep(timeout.seconds_to_sleep(), [&] { return all_are_here() || segment_.failure().known(); });
      }
    }
  }

 private:
  // A party that was seen to have arrived need not be looked at again. One may already be in the next round.
  bool all_are_here() {
    while (seen_ < parties_.size() &&
           static_cast<std::int32_t>(parties_[seen_].round.load(std::memory_order_seq_cst) - round_) >= 0)
      ++seen_;
    return seen_ == parties_.size();
  }
  [[noreturn]] void lost() const { segment_.failure().throw_peer_lost("barrier `" + name_ + "`"); }

  Segment& segment_;
  const std::string name_;
  WakeUp& wake_up_;
  const std::span<BarrierMemory::Party> parties_;
  PublishedCore& core_;
  std::atomic<std::uint32_t>& mine_;
  const SpinPolicy spin_policy_;
  CoreMover mover_;
  std::uint32_t round_;
  std::size_t seen_ = 0;  // parties below this are known to have arrived
  bool here_ = false;     // arrived in an earlier call, which came to its deadline
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
    // Its size tells the count of parties: a wrong one is a Mismatch.
    const auto memory = segment_.region(fmt::format("barrier {}", name), BarrierMemory::size(parties));
    auto& barrier = *std::launder(reinterpret_cast<BarrierMemory*>(memory.data()));
    return std::make_unique<Barrier>(segment_, std::string(name), barrier, index, parties);
  }

 private:
  Segment& segment_;
};

}  // namespace

std::unique_ptr<SharedMemory> make_shared_memory(Segment& segment) { return std::make_unique<Regions>(segment); }

}  // namespace echelon
