#include "world/transport/tcp/tcp_world.h"

#include "world/channels.h"
#include "world/os/machine_world.h"
#include "world/transport/memory/host_ranks.h"
#include "world/transport/tcp/self_link.h"

namespace echelon::tcp {

namespace {

RankPlace place_of(const RankConfig& config) {
  std::vector<int> hosts;
  for (const Peer& peer : config.table.peers) hosts.push_back(peer.host);
  RankPlace place;
  place.world = "tcp";
  place.rank = config.rank;
  place.size = static_cast<int>(hosts.size());
  place.host = std::move(hosts);
  place.seed = config.table.seed;
  return place;
}

// Messages go through shared memory to ranks of this machine (if it can be shared), through the mesh to others.
class TcpWorld final : public MachineWorld {
 public:
  explicit TcpWorld(const RankConfig& config)
      : place_(place_of(config)),
        self_(pool_, config.rank),
        mesh_(config, failure_, pool_, clock(), [this] { fail_local_waits(); }) {
    status_.activity.reserve(RankStatus::activity_bytes);
    try {
      mesh_.join();
      if (config.share_memory) find_host_ranks(config);
    } catch (...) {
      mesh_.stop();
      throw;
    }
  }

  bool failed() const { return failure_.known() || (host_ranks_ && host_ranks_->segment().failure().known()); }
  void finish() {
    if (host_ranks_) host_ranks_->end();
    mesh_.finish();
  }

  const RankPlace& place() const override { return place_; }

  Work send(Rank to, Channel channel, Label label, std::span<const std::byte> bytes) override {
    if (on_this_machine(to)) return host_ranks_->endpoint().send(host_ranks_->index(to), channel, label, bytes);
    if (to == place_.rank) return self_.send(channel, label, bytes);
    return mesh_.link(to).send(channel, label, bytes);
  }
  Work receive(Rank from, Channel channel, Label label, std::span<std::byte> into) override {
    return receive(from, channel, label, into.data(), into.size(), {});
  }
  Work receive(Rank from, Channel channel, Label label, std::size_t bytes, Sink sink) override {
    return receive(from, channel, label, nullptr, bytes, sink);
  }
  SharedMemory* shared_memory() override { return host_ranks_ ? host_ranks_->shared_memory() : nullptr; }

  void set_status(std::string_view activity) override {
    const std::lock_guard lock(mutex_);
    status_.activity.assign(activity.substr(0, RankStatus::activity_bytes));
    publish_status();
  }
  void set_waiting_for(Rank rank) override {
    const std::lock_guard lock(mutex_);
    status_.waiting_for = rank;
    publish_status();
  }
  RankStatus status_of(Rank rank) override {
    if (on_this_machine(rank)) return host_ranks_->status_of(rank);
    if (rank != place_.rank) return mesh_.link(rank).status();
    const std::lock_guard lock(mutex_);
    return status_;
  }
  using World::abort;
  void abort(std::string_view reason, FailureKind kind) override { mesh_.abort(reason, kind); }

 private:
  bool on_this_machine(Rank rank) const {
    return host_ranks_ && rank >= 0 && rank < place_.size && host_ranks_->has(rank);
  }
  Work receive(Rank from, Channel channel, const Label& label, std::byte* into, std::size_t bytes, Sink sink) {
    if (on_this_machine(from))
      return host_ranks_->endpoint().receive(host_ranks_->index(from), channel, label, bytes, into, sink);
    if (from == place_.rank) return self_.receive(channel, label, into, bytes, sink);
    return mesh_.link(from).receive(channel, label, into, bytes, sink);
  }
  void publish_status() {
    mesh_.set_status(status_);
    if (host_ranks_) host_ranks_->set_status(status_);
  }

  void find_host_ranks(const RankConfig& config) {
    std::unique_ptr<HostRanks> found;
    try {
      found = HostRanks::find(*this, config.launch, host_ranks_channel, now() + config.mesh_seconds);
    } catch (const PeerLost&) {
      return;  // the program will hear of it
    }
    if (!found) return;
    const std::lock_guard lock(mutex_);  // the mesh's thread looks at it when a rank is lost
    pool_.wait_with(&found->endpoint());
    host_ranks_ = std::move(found);
    if (failure_.known()) tell_host_ranks();
  }
  // Ends the waits of the ranks on this machine that look at the shared memory.
  void tell_host_ranks() {
    if (host_ranks_) host_ranks_->segment().fail_world(failure_.rank(), failure_.reason(), failure_.kind());
  }
  void fail_local_waits() {
    {
      const std::lock_guard lock(mutex_);
      tell_host_ranks();
    }
    self_.fail_all();
  }

  const RankPlace place_;
  FirstFailure failure_;
  TransferPool pool_{failure_, clock()};
  SelfLink self_;
  std::mutex mutex_;  // guards the status, and `host_ranks_` while it is being set
  RankStatus status_;
  std::unique_ptr<HostRanks> host_ranks_;  // null if there are none to share memory with
  Mesh mesh_;                              // the last: its thread uses the others until it ends
};

}  // namespace

void run_rank(const RankConfig& config, const Program& program) {
  TcpWorld world(config);
  try {
    program(world);
  } catch (const PeerLost& e) {
    if (world.failed()) throw;
    world.abort(e.what());  // nobody was lost: this program waited for one that has ended
    throw Failure(e.what());
  } catch (const std::exception& e) {
    world.abort(e.what(), kind_of(e));
    throw;
  }
  world.finish();
}

}  // namespace echelon::tcp
