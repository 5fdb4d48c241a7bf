#include "parallel/rules/rules.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace echelon {

namespace {

struct Entry {
  const char* name;
  rules::MergeRuleMaker make;
};
constexpr std::array table{
    Entry{"grad_mean", rules::grad_mean},            // the mean gradient; every worker steps alike
    Entry{"grad_push", rules::grad_push},            // the optimizer runs where gradients meet
    Entry{"param_mean", rules::param_mean},          // the mean of the weights
    Entry{"outer_momentum", rules::outer_momentum},  // momentum on the mean movement
    Entry{"sma", rules::sma},                        // learners pulled towards a central average
    Entry{"elastic", rules::elastic},                // an elastic force between a worker and the centre
    Entry{"neighbour_mean", rules::neighbour_mean},  // the mean with the neighbours, by the graph's matrix
    Entry{"gossip_sum", rules::gossip_sum},          // weights travel with a share of one that is never lost
    Entry{"gossip_walk", rules::gossip_walk},        // models walk, and are merged by their ages
    Entry{"movement_add", rules::movement_add},      // what a worker's own steps have moved it is added
    Entry{"sign_majority", rules::sign_majority},    // a vote on the sign of every number
    Entry{"mpca", rules::mpca},                      // a penalty on the distance from an extrapolated centre
};

}  // namespace

void SharedSide::absorb(std::span<const float>, const PushInfo&) { invariant(false, "this rule merges whole rounds"); }

std::unique_ptr<WorkerSide> MergeRule::make_worker(const ReplicaView&) const {
  invariant(false, "this rule is between equals");
  return nullptr;
}
std::unique_ptr<SharedSide> MergeRule::make_shared(const Place&) const {
  invariant(false, "this rule has no shared side");
  return nullptr;
}
std::unique_ptr<PeerSide> MergeRule::make_peer(const ReplicaView&) const {
  invariant(false, "this rule is not between equals");
  return nullptr;
}

std::vector<std::string> merge_rule_names() {
  std::vector<std::string> names;
  for (const Entry& e : table) names.emplace_back(e.name);
  return names;
}

std::unique_ptr<const MergeRule> read_rule(OptionReader& options) {
  const std::string name = options.choice("name", "grad_mean", merge_rule_names());
  const auto found = std::ranges::find(table, name, [](const Entry& e) { return std::string(e.name); });
  auto rule = (found == table.end() ? table.front() : *found).make(options);
  options.done();
  return rule;
}

}  // namespace echelon
