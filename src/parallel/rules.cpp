#include "parallel/rules/rules.h"

#include "base/error.h"
#include "kernels/reduce.h"

namespace echelon {

const std::vector<RulePart>& rule_parts() {
  using namespace rules;
  static const std::vector<RulePart> rows{
      grad_mean(),      grad_push(),  param_mean(),   outer_momentum(), sma(),           elastic(),
      neighbour_mean(), gossip_sum(), gossip_walk(),  movement_add(),   sign_majority(), mpca(),
      krum(),           bulyan(),     trimmed_mean(), median(),         foolsgold(),     lbfgs()};
  return rows;
}

void SharedSide::absorb(std::span<const float>, const PushInfo&) { invariant(false, "this rule merges whole rounds"); }

void EachSide::compare(std::span<const std::span<const float>> each, std::span<double> products) {
  for (std::size_t i = 0; i < each.size(); ++i)
    for (std::size_t j = i; j < each.size(); ++j)
      products[i * each.size() + j] = products[j * each.size() + i] =
          kernels::dot(each[i].data(), each[j].data(), each[i].size());
}

std::unique_ptr<WorkerSide> MergeRule::make_worker(const ReplicaView&) const {
  invariant(false, "this rule is between equals");
  return nullptr;
}
std::unique_ptr<SharedSide> MergeRule::make_shared(const Place&) const {
  invariant(false, "this rule has no shared side");
  return nullptr;
}
std::unique_ptr<EachSide> MergeRule::make_each(std::size_t, int) const {
  invariant(false, "this rule merges sums");
  return nullptr;
}
std::unique_ptr<PeerSide> MergeRule::make_peer(const ReplicaView&) const {
  invariant(false, "this rule is not between equals");
  return nullptr;
}

std::unique_ptr<const MergeRule> read_rule(OptionReader& options) {
  auto rule = chosen_row(rule_parts(), options, "grad_mean").make(options);
  options.done();
  return rule;
}

}  // namespace echelon
