#pragma once
// One rank of an MPI job as a World. Ranks of the same machine send each other messages through shared memory, if they
// can share any, and through MPI otherwise.

#include <memory>
#include <mutex>
#include <vector>

#include "world/os/machine_world.h"
#include "world/pool.h"
#include "world/transport/memory/host_ranks.h"
#include "world/transport/mpi/join.h"
#include "world/transport/mpi/transport.h"

namespace echelon::mpi {

class MpiWorld final : public MachineWorld {
 public:
  // Collective: all ranks make theirs. MPI runs.
  MpiWorld(EchelonMpiApi& api, const LaunchOptions& launch, const MpiOptions& options);

  const RankPlace& place() const override { return place_; }
  Work send(Rank to, Channel channel, Label label, std::span<const std::byte> bytes) override;
  Work receive(Rank from, Channel channel, Label label, std::span<std::byte> into) override {
    return receive(from, channel, label, into.data(), into.size(), {});
  }
  Work receive(Rank from, Channel channel, Label label, std::size_t bytes, Sink sink) override {
    return receive(from, channel, label, nullptr, bytes, sink);
  }
  SharedMemory* shared_memory() override { return host_ranks_ ? host_ranks_->shared_memory() : nullptr; }
  bool native_all_reduce(void* data, std::size_t count, int type, int op) override;
  // Ranks of other machines are told only when this rank begins or ceases to wait: MPI has no thread of its own that
  // could tell them meanwhile.
  void set_status(std::string_view activity) override;
  void set_waiting_for(Rank rank) override;
  RankStatus status_of(Rank rank) override;
  using World::abort;
  void abort(std::string_view reason, FailureKind kind) override;

  bool failed() const { return failure_.known() || (host_ranks_ && host_ranks_->segment().failure().known()); }
  void finish();  // after the program: waits for the others' end; throws PeerLost
  // MPI ends well only if all ranks come to the end. Those that wait hear of the failure and do; the others have that
  // long before MPI_Abort ends the job.
  void end_after_failure(double grace_seconds);
  void make_progress();  // of the messages on this machine, and of failure reports

 private:
  // A message between ranks of one machine, in a job on several: while a task waits for it, MPI must make progress.
  struct LocalWork final : Operation {
    bool wait(double deadline) override;
    bool finished() override { return inner.finished(); }
    void release() override;
    MpiWorld* world = nullptr;
    Work inner;
  };

  bool on_this_machine(Rank other) const { return host_ranks_ && host_ranks_->has(other); }
  Work receive(Rank from, Channel channel, Label label, std::byte* into, std::size_t bytes, Sink sink);
  Work with_mpi_progress(Work work);
  void exchange_places(const LaunchOptions& launch);
  void tell_all(FrameKind kind, std::span<const std::byte> payload, std::uint64_t sequence = 0);
  void tell_host_ranks();

  EchelonMpiApi& api_;
  RankPlace place_;
  FirstFailure failure_;
  MpiTransport transport_;
  std::unique_ptr<HostRanks> host_ranks_;
  std::mutex mutex_;  // guards what follows
  RankStatus status_;
  std::vector<RankStatus> told_;  // by the other ranks
  Pool<LocalWork> local_works_;
};

}  // namespace echelon::mpi
