// The mean with the neighbours' weights, by the graph's mixing matrix (D-PSGD; MALT with sync async). How much each
// counts is the exchange's business (parallel/exchanges/peer_graph.h).

#include "parallel/rules/common.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

class NeighbourMeanPeer : public PeerSide {
 public:
  double give(int, std::int64_t) override { return 1; }
  void take(std::span<float> mine, std::span<const float> in, const Gift& gift) override {
    kernels::lerp(mine.data(), mine.data(), in.data(), static_cast<float>(gift.mix), mine.size());
  }
};

class NeighbourMean : public BetweenEquals {
 public:
  std::unique_ptr<PeerSide> make_peer(const ReplicaView&) const override {
    return std::make_unique<NeighbourMeanPeer>();
  }
};

std::unique_ptr<const MergeRule> make_neighbour_mean(OptionReader&) { return std::make_unique<NeighbourMean>(); }

}  // namespace

RulePart neighbour_mean() {
  return {{"neighbour_mean", "the mean with the neighbours' parameters, by the graph's mixing matrix", {}},
          make_neighbour_mean};
}

}  // namespace echelon::rules
