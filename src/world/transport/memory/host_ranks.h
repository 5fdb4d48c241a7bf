#pragma once
// The ranks of this machine inside a world of several machines (tcp, mpi). They find each other through the world's own
// messages; from then on they share a Segment.

#include <memory>
#include <vector>

#include "world/launch.h"
#include "world/transport/memory/endpoint.h"
#include "world/transport/memory/segment.h"

namespace echelon {

class HostRanks {
 public:
  // Every rank of the world calls it before anything else uses the world; it sends on `channel`. Null on a rank that is
  // alone on its machine, and on all ranks of a machine where memory cannot be shared (processes in different
  // containers, for example). Throws TooLate at the deadline, and what the world's waits throw.
  static std::unique_ptr<HostRanks> find(World& world, const LaunchOptions& options, Channel channel, double deadline);

  bool has(Rank rank) const { return index_[static_cast<std::size_t>(rank)] >= 0; }
  int index(Rank rank) const { return index_[static_cast<std::size_t>(rank)]; }  // in the segment; -1: elsewhere
  Segment& segment() { return *segment_; }
  Endpoint& endpoint() { return *endpoint_; }
  SharedMemory* shared_memory() { return shared_.get(); }  // null unless all ranks of the world are on this machine
  // One caller of set_status at a time.
  void set_status(const RankStatus& status) { segment_->rank(index(me_)).status.write(status); }
  RankStatus status_of(Rank rank) const { return segment_->rank(index(rank)).status.read(); }
  void end();  // this rank's program has returned

 private:
  HostRanks(World& world, std::unique_ptr<Segment> segment, const std::vector<Rank>& members);

  const Rank me_;
  std::vector<int> index_;
  std::unique_ptr<Segment> segment_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<SharedMemory> shared_;
};

}  // namespace echelon
