// Gossip with sum weights (GoSGD; push-sum). Every replica has a share alpha of one. It gives its weights away together
// with an equal part of its share, and who gets them takes the mean weighted by shares and adds the share to its own:
// all shares together are always one, messages on their way included, so no worker's part counts twice or gets lost,
// however unevenly messages come.

#include "parallel/rules/common.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

class GossipSumPeer : public PeerSide {
 public:
  explicit GossipSumPeer(int workers) : alpha_(1.0 / workers) {}
  double give(int peers, std::int64_t) override {
    alpha_ /= peers + 1;
    return alpha_;
  }
  void take(std::span<float> mine, std::span<const float> in, const Gift& gift) override {
    const double both = alpha_ + gift.weight;
    kernels::lerp(mine.data(), mine.data(), in.data(), static_cast<float>(gift.weight / both), mine.size());
    alpha_ = both;
  }
  double weight() const override { return alpha_; }
  std::vector<StateSpan> state() override { return {as_state("alpha", alpha_)}; }

 private:
  double alpha_;
};

class GossipSum : public BetweenEquals {
 public:
  std::unique_ptr<PeerSide> make_peer(const ReplicaView& view) const override {
    return std::make_unique<GossipSumPeer>(view.workers);
  }
};

std::unique_ptr<const MergeRule> make_gossip_sum(OptionReader&) { return std::make_unique<GossipSum>(); }

}  // namespace

RulePart gossip_sum() {
  return {{"gossip_sum", "parameters travel with a weight; the receiver takes the weighted mean", {}}, make_gossip_sum};
}

}  // namespace echelon::rules
