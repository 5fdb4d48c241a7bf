#include "world/transport/memory/memory_world.h"

#include <mutex>

#include "world/os/machine_world.h"
#include "world/transport/memory/endpoint.h"
#include "world/transport/memory/regions.h"

namespace echelon {

namespace {

class MemoryWorld : public MachineWorld {
 public:
  MemoryWorld(const std::string& world, Segment& segment, int rank, std::uint64_t seed)
      : segment_(segment),
        place_{world, rank, segment.ranks(), std::vector<int>(static_cast<std::size_t>(segment.ranks())), seed, true},
        shared_(make_shared_memory(segment)),
        endpoint_(segment, rank) {
    status_.activity.reserve(RankStatus::activity_bytes);
  }

  const RankPlace& place() const override { return place_; }

  Work send(Rank to, Channel channel, Label label, std::span<const std::byte> bytes) override {
    return endpoint_.send(to, channel, label, bytes);
  }
  Work receive(Rank from, Channel channel, Label label, std::span<std::byte> into) override {
    return endpoint_.receive(from, channel, label, into.size(), into.data(), {});
  }
  Work receive(Rank from, Channel channel, Label label, std::size_t bytes, Sink sink) override {
    return endpoint_.receive(from, channel, label, bytes, nullptr, sink);
  }

  SharedMemory* shared_memory() override { return shared_.get(); }

  void set_status(std::string_view activity) override {
    const std::lock_guard lock(status_mutex_);
    status_.activity.assign(activity.substr(0, RankStatus::activity_bytes));
    segment_.rank(rank()).status.write(status_);
  }
  void set_waiting_for(Rank other) override {
    const std::lock_guard lock(status_mutex_);
    status_.waiting_for = other;
    segment_.rank(rank()).status.write(status_);
  }
  RankStatus status_of(Rank rank) override { return segment_.rank(rank).status.read(); }
  void abort(std::string_view reason, FailureKind kind) override { segment_.fail_world(rank(), reason, kind); }

 private:
  Segment& segment_;
  RankPlace place_;
  std::unique_ptr<SharedMemory> shared_;
  Endpoint endpoint_;
  std::mutex status_mutex_;  // tasks of this rank may all say something; the status in the segment has one writer
  RankStatus status_;
};

}  // namespace

std::unique_ptr<World> make_memory_world(const std::string& world, Segment& segment, int rank, std::uint64_t seed) {
  return std::make_unique<MemoryWorld>(world, segment, rank, seed);
}

void run_rank(const std::string& world, Segment& segment, int rank, std::uint64_t seed, const Program& program) {
  try {
    program(*make_memory_world(world, segment, rank, seed));
  } catch (const std::exception& error) {
    segment.fail_world(rank, error.what(), kind_of(error));
  } catch (...) {
    segment.fail_world(rank, "it threw something that is no exception");
  }
  segment.rank(rank).ended.store(1, std::memory_order_release);
  for (int r = 0; r < segment.ranks(); ++r) segment.rank(r).wake_up.wake();
}

}  // namespace echelon
