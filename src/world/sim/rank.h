#pragma once
// One rank of a simulation as its program's World, and what all ranks of a simulation share.

#include <memory>
#include <string>

#include "world/sim/scheduler.h"
#include "world/sim/simulation.h"
#include "world/sim/transport.h"
#include "world/transport/first_failure.h"
#include "world/world.h"

namespace echelon::sim {

// Thrown into the fibers of a rank that has crashed, so that they end. No std::exception: nobody handles it by mistake.
struct RankCrashed {};

class Machinery;

class SimRank final : public World {
 public:
  SimRank(Machinery& machinery, RankPlace place, double flops, std::shared_ptr<MemoryDisk> disk);
  ~SimRank() override;

  const RankPlace& place() const override { return place_; }
  Clock& clock() override { return *clock_; }
  void sleep(double seconds) override;
  void compute(double flops) override;
  Disk& disk() override { return *disk_; }
  std::unique_ptr<Task> spawn(const std::string& name, std::function<void()> body) override;
  std::unique_ptr<Event> make_event() override;
  std::unique_ptr<CompletionQueue> make_completion_queue() override;
  Work send(Rank to, Channel channel, Label label, std::span<const std::byte> bytes) override;
  Work receive(Rank from, Channel channel, Label label, std::span<std::byte> into) override;
  Work receive(Rank from, Channel channel, Label label, std::size_t bytes, Sink sink) override;
  SharedMemory* shared_memory() override { return nullptr; }
  void set_status(std::string_view activity) override {
    status_.activity = activity.substr(0, RankStatus::activity_bytes);
  }
  void set_waiting_for(Rank rank) override { status_.waiting_for = rank; }
  RankStatus status_of(Rank rank) override;
  using World::abort;
  void abort(std::string_view reason, FailureKind kind) override;

  // For Machinery.
  enum class State { running, ended, failed, crashed };
  State state() const { return state_; }
  void set_state(State state) { state_ = state; }
  void lose(int rank, const std::string& reason);  // from now on every wait throws PeerLost
  void check_alive() const;                        // throws RankCrashed
  void check_whole(const Scheduler::Describe& operation) const;
  void clock_was_read();

 private:
  class SimClock;
  class SimTask;
  class SimEvent;

  Machinery& machinery_;
  RankPlace place_;
  double flops_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Disk> disk_;
  State state_ = State::running;
  FirstFailure failure_;  // that this rank has heard of
  RankStatus status_;
  double core_free_at_ = 0;
  double clock_read_at_ = -1;
  std::uint64_t clock_reads_ = 0;
};

// Everything that the ranks of one simulation share.
class Machinery {
 public:
  Machinery(const SimCluster& cluster, const SimOptions& options, const Program& program);
  SimReport run();

  Scheduler& scheduler() { return scheduler_; }
  Transport& transport() { return transport_; }
  SimReport& report() { return report_; }
  SimRank& rank(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
  double slowness(int rank);
  // The first loss of the run is reported to all ranks by `teller`, after the latency of its links.
  void tell_everybody(int teller, int lost, const std::string& reason);
  void failed(int rank, const std::string& text, bool crashed, std::exception_ptr error);
  void log(const std::string& line) const;

 private:
  void run_program(int rank);
  void schedule_faults();
  void crash(int rank, const std::string& reason);

  const SimCluster& cluster_;
  const SimOptions& options_;
  const Program& program_;
  SimReport report_;
  std::vector<int> machine_of_;
  Scheduler scheduler_;
  Network network_;
  std::vector<std::shared_ptr<MemoryDisk>> disks_;
  Transport transport_;
  std::vector<std::unique_ptr<SimRank>> ranks_;
  std::vector<std::function<void()>> fullness_;  // of each planned full disk: has it refused a write?
  bool told_ = false;
};

// The machine's disk as one rank sees it: a crashed rank can write no more.
std::unique_ptr<Disk> disk_of_rank(const SimRank& rank, std::shared_ptr<MemoryDisk> disk);

}  // namespace echelon::sim
