// Hierarchical: inside each host up a binomial tree to the host's leader, a ring between the leaders, and down the
// trees again. A host's data crosses the slow links as often as the ring over hosts needs, however many members the
// host has.
//   messages and bytes: a host's tree (binomial.cpp), and for the leader of each of h hosts 2(h-1) messages of B/h
//   time 2 ceil(log2 m) (a' + B b') + ceil(log2 m) B c + ring over h; m members on a host, ' inside it

#include <span>

#include "collective/algorithms.h"
#include "collective/transfers/plans.h"

namespace echelon {

namespace {

const Algorithm& tree() { return find_algorithm("binomial"); }
const Algorithm& ring() { return find_algorithm("ring"); }

// Runs the transfers of a subgroup, whose member numbers it translates.
class SubgroupRunner : public TransferRunner {
 public:
  SubgroupRunner(std::span<const int> members, TransferRunner& runner) : members_(members), runner_(runner) {}
  void run(const Transfer& t) override {
    Transfer translated = t;
    if (t.to >= 0) translated.to = members_[static_cast<std::size_t>(t.to)];
    if (t.from >= 0) translated.from = members_[static_cast<std::size_t>(t.from)];
    runner_.run(translated);
  }

 private:
  std::span<const int> members_;
  TransferRunner& runner_;
};

// The parts of an all-reduce in which this member takes part: inside its host, and between the leaders.
AllReduceShape inside_host(const AllReduceShape& c) {
  return {
      .n = static_cast<int>(c.hosts->local.size()), .index = c.hosts->local_index, .count = c.count, .item = c.item};
}
AllReduceShape between_leaders(const AllReduceShape& c) {
  return {
      .n = static_cast<int>(c.hosts->leaders.size()), .index = c.hosts->host_index, .count = c.count, .item = c.item};
}

void plan_hierarchical(const AllReduceShape& c, TransferRunner& runner) {
  const AllReduceShape inside = inside_host(c), across = between_leaders(c);
  const Range all{0, c.count};
  SubgroupRunner local(c.hosts->local, runner), leaders(c.hosts->leaders, runner);
  plan_binomial_reduce(inside.n, inside.index, 0, all, 0, local);
  if (inside.index == 0 && across.n > 1) ring().plan(across, leaders);
  plan_binomial_broadcast(inside.n, inside.index, 0, all, 1, local);
}

MemberTraffic hierarchical_traffic(const AllReduceShape& c) {
  MemberTraffic t = tree().traffic(inside_host(c));
  if (c.hosts->local_index == 0) {
    const MemberTraffic across = ring().traffic(between_leaders(c));
    t.messages += across.messages;
    t.bytes += across.bytes;
  }
  return t;
}

double hierarchical_seconds(double bytes, int n, const LinkCosts& l) {
  LinkCosts inside = l;
  inside.latency = l.host_latency;
  inside.per_byte = l.host_per_byte;
  const int per_host = (n + l.hosts - 1) / l.hosts;
  return tree().seconds(bytes, per_host, inside) + ring().seconds(bytes, l.hosts, l);
}

}  // namespace

Algorithm hierarchical_all_reduce() {
  return {.name = "hierarchical",
          .about = "inside each host a tree, a ring between the hosts (Jia et al. 2018)",
          .plan = plan_hierarchical,
          .traffic = hierarchical_traffic,
          .seconds = hierarchical_seconds};
}

}  // namespace echelon
