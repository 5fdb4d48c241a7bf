#pragma once
// The ranks of one machine inside a world of several machines (tcp, mpi): they find each other through the world's own
// messages and then talk through a Segment.

#include <memory>
#include <vector>

#include "world/launch.h"
#include "world/transport/memory/endpoint.h"
#include "world/transport/memory/segment.h"

namespace echelon {

class HostRanks {
 public:
  // Every rank of the world calls it, before anything else uses the world; messages go over the channel `channel`. Null
  // on ranks that are alone on their machine, and on all ranks of a machine where memory cannot be shared (processes in
  // different containers, for example). Throws TooLate at the deadline, and what the world's waits throw.
  static std::unique_ptr<HostRanks> find(World& world, const LaunchOptions& options, Channel channel, double deadline);

  bool has(Rank rank) const { return index_[static_cast<std::size_t>(rank)] >= 0; }
  int index(Rank rank) const { return index_[static_cast<std::size_t>(rank)]; }  // in the segment; -1: elsewhere
  Segment& segment() { return *segment_; }
  Endpoint& endpoint() { return *endpoint_; }
  SharedMemory* shared_memory() { return shared_.get(); }  // null unless all ranks of the world are here
  void end();                                              // this rank's program has returned

 private:
  HostRanks(World& world, std::unique_ptr<Segment> segment, const std::vector<Rank>& members);

  const Rank me_;
  std::vector<int> index_;
  std::unique_ptr<Segment> segment_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<SharedMemory> shared_;
};

}  // namespace echelon
