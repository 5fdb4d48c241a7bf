#include "world/transport/memory/memory_world.h"

#include <mutex>

#include "world/os/tasks.h"
#include "world/transport/memory/endpoint.h"
#include "world/transport/memory/regions.h"

namespace echelon {

namespace {

class MemoryWorld : public World {
 public:
  MemoryWorld(const std::string& world, Segment& segment, int rank, std::uint64_t seed)
      : segment_(segment),
        place_{world, rank, segment.ranks(), std::vector<int>(static_cast<std::size_t>(segment.ranks())), seed, true},
        clock_(make_real_clock()),
        disk_(make_real_disk()),
        shared_(make_shared_memory(segment)),
        endpoint_(segment, rank) {}

  const RankPlace& place() const override { return place_; }
  Clock& clock() override { return *clock_; }
  void sleep(double seconds) override { sleep_really(seconds); }
  void compute(double) override {}
  Disk& disk() override { return *disk_; }

  std::unique_ptr<Task> spawn(const std::string& name, std::function<void()> body) override {
    return spawn_thread(name, std::move(body));
  }
  std::unique_ptr<Event> make_event() override { return make_thread_event(); }

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

  void set_status(std::string_view what) override {
    const std::lock_guard lock(status_);  // tasks of this rank may all say something; the status has one writer
    segment_.rank(rank()).status.write(what);
  }
  std::string status_of(Rank rank) override { return segment_.rank(rank).status.read(); }
  void abort(std::string_view reason) override { segment_.break_world(rank(), FailureKind::failure, reason); }

 private:
  std::mutex status_;
  Segment& segment_;
  RankPlace place_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Disk> disk_;
  std::unique_ptr<SharedMemory> shared_;
  Endpoint endpoint_;
};

}  // namespace

std::unique_ptr<World> make_memory_world(const std::string& world, Segment& segment, int rank, std::uint64_t seed) {
  return std::make_unique<MemoryWorld>(world, segment, rank, seed);
}

void run_rank(const std::string& world, Segment& segment, int rank, std::uint64_t seed, const Program& program) {
  try {
    program(*make_memory_world(world, segment, rank, seed));
  } catch (const BadInput& error) {
    segment.break_world(rank, FailureKind::bad_input, error.what());
  } catch (const std::exception& error) {
    segment.break_world(rank, FailureKind::failure, error.what());
  } catch (...) {
    segment.break_world(rank, FailureKind::failure, "it threw something that is no exception");
  }
  segment.rank(rank).ended.store(1, std::memory_order_release);
  for (int r = 0; r < segment.ranks(); ++r) segment.rank(r).wake_up.wake();
}

}  // namespace echelon
