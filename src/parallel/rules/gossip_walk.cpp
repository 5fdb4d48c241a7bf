// Gossip learning: a model has an age, the steps that it has been trained. One that walks in is merged with the one
// that lives here in proportion to their ages, and the merger is as old as the older of the two; then it is trained
// here, and walks on.

#include "parallel/rules/common.h"
#include "parallel/rules/rules.h"

namespace echelon::rules {

namespace {

class GossipWalkPeer : public PeerSide {
 public:
  double give(int, std::int64_t clock) override { return age(clock); }
  void take(std::span<float> mine, std::span<const float> in, const Gift& gift) override {
    const double own = age(gift.clock), both = own + gift.weight;
    const double part = both > 0 ? gift.weight / both : 0.5;  // two that were never trained
    kernels::lerp(mine.data(), mine.data(), in.data(), static_cast<float>(part), mine.size());
    inherited_ += std::max(0.0, gift.weight - own);
  }
  std::vector<StateSpan> state() override { return {as_state("inherited", inherited_)}; }

 private:
  double age(std::int64_t clock) const { return static_cast<double>(clock) + inherited_; }
  double inherited_ = 0;  // steps that it was trained elsewhere
};

class GossipWalk : public BetweenEquals {
 public:
  std::unique_ptr<PeerSide> make_peer(const ReplicaView&) const override { return std::make_unique<GossipWalkPeer>(); }
};

std::unique_ptr<const MergeRule> make_gossip_walk(OptionReader&) { return std::make_unique<GossipWalk>(); }

}  // namespace

RulePart gossip_walk() {
  return {{"gossip_walk", "models walk between workers and are merged on arrival", {}}, make_gossip_walk};
}

}  // namespace echelon::rules
