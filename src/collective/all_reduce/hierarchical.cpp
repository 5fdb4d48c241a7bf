// Hierarchical: inside a host up a binomial tree to its first member, between the hosts' first members in a ring,
// inside the hosts down again. Each host's numbers cross the slow link only as often as the ring over hosts asks for,
// however many members it has.
//   messages and bytes: a host's tree (binomial.cpp), and for the first of each of h hosts 2(h-1) messages of B/h
//   time 2 ceil(log2 m) (a' + B b') + ceil(log2 m) B c + ring over h, m members on a host, ' inside it

#include <span>

#include "collective/algorithms.h"
#include "collective/plans.h"

namespace echelon {

namespace {

// Translates member numbers of a smaller group.
class Among : public Mover {
 public:
  Among(std::span<const int> members, Mover& mover) : members_(members), mover_(mover) {}
  void move(const Move& m) override {
    Move real = m;
    if (m.to >= 0) real.to = members_[static_cast<std::size_t>(m.to)];
    if (m.from >= 0) real.from = members_[static_cast<std::size_t>(m.from)];
    mover_.move(real);
  }

 private:
  std::span<const int> members_;
  Mover& mover_;
};

void plan(const TrafficQuery& c, Mover& mover) {
  const Site& site = *c.site;
  const int m = static_cast<int>(site.here.size()), h = static_cast<int>(site.leaders.size());
  const Range all{0, c.count};
  Among inside(site.here, mover), across(site.leaders, mover);
  plan_binomial_reduce(m, site.place, 0, all, 0, inside);
  if (site.place == 0 && h > 1)
    ring_all_reduce.plan({.n = h, .index = site.host, .count = c.count, .item = c.item}, across);
  plan_binomial_broadcast(m, site.place, 0, all, 1, inside);
}

Traffic traffic(const TrafficQuery& c) {
  const Site& site = *c.site;
  Traffic t = binomial_all_reduce.traffic(
      {.n = static_cast<int>(site.here.size()), .index = site.place, .count = c.count, .item = c.item});
  if (site.place == 0) {
    const Traffic ring = ring_all_reduce.traffic(
        {.n = static_cast<int>(site.leaders.size()), .index = site.host, .count = c.count, .item = c.item});
    t.messages += ring.messages;
    t.bytes += ring.bytes;
  }
  return t;
}

double seconds(double bytes, int n, const Link& l) {
  Link inside = l;
  inside.latency = l.host_latency;
  inside.per_byte = l.host_per_byte;
  const int per_host = (n + l.hosts - 1) / l.hosts;
  return binomial_all_reduce.seconds(bytes, per_host, inside) + ring_all_reduce.seconds(bytes, l.hosts, l);
}

}  // namespace

const Algorithm hierarchical_all_reduce{.name = "hierarchical",
                                        .about = "inside each host a tree, a ring between the hosts (Jia et al. 2018)",
                                        .plan = plan,
                                        .traffic = traffic,
                                        .seconds = seconds};

}  // namespace echelon
