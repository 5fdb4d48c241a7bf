// The transfers of the algorithms, recorded instead of carried out: every message has a receiver that expects it, and
// what each member sends is what its `traffic` says.

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <vector>

#include "collective/algorithms.h"
#include "collective/transfers/plans.h"

namespace echelon {
namespace {

class Recorder : public TransferRunner {
 public:
  void run(const Transfer& t) override { transfers.push_back(t); }
  std::vector<Transfer> transfers;
};

struct Message {
  std::size_t count;
  int step;
  friend bool operator==(const Message&, const Message&) = default;
};

std::vector<int> hosts_of(int n) {  // of uneven sizes
  std::vector<int> hosts;
  for (int i = 0; i < n; ++i) hosts.push_back(i % 3 == 0 ? 0 : i / 4);
  return hosts;
}

TEST(Plan, EveryMessageIsExpectedAndCounted) {
  for (const Algorithm& a : all_reduce_algorithms()) {
    if (!a.plan) continue;
    for (int n = 1; n <= 33; ++n)
      for (const std::size_t count : {0u, 1u, 5u, 1000u, 300000u}) {
        std::map<std::pair<int, int>, std::vector<Message>> sent, expected;
        const auto hosts = hosts_of(n);
        for (int i = 0; i < n; ++i) {
          const HostTopology topology = host_topology_of(hosts, i);
          const AllReduceShape c{.n = n, .index = i, .count = count, .item = 4, .hosts = &topology};
          Recorder r;
          a.plan(c, r);
          MemberTraffic t;
          for (const Transfer& m : r.transfers) {
            if (m.to >= 0) {
              ASSERT_NE(m.to, i);
              sent[{i, m.to}].push_back({m.out.count(), m.step});
              t.messages += 1;
              t.bytes += 4 * m.out.count();
            }
            if (m.from >= 0) {
              ASSERT_NE(m.from, i);
              expected[{m.from, i}].push_back({m.in.count(), m.step});
            }
          }
          EXPECT_EQ(t, a.traffic(c)) << a.name << ": member " << i << " of " << n << ", " << count << " numbers: sends "
                                     << t.messages << " messages with " << t.bytes << " bytes, not "
                                     << a.traffic(c).messages << " with " << a.traffic(c).bytes;
        }
        EXPECT_EQ(sent, expected) << a.name << " with " << n << " members, " << count << " numbers";
      }
  }
}

TEST(Plan, MoreBytesTakeLonger) {
  LinkCosts link;
  link.hosts = 2;
  link.barrier = 1e-6;
  for (const Algorithm& a : all_reduce_algorithms())
    for (const int n : {2, 3, 8, 100}) {
      EXPECT_GT(a.seconds(1e8, n, link), a.seconds(1e6, n, link)) << a.name;
      EXPECT_GT(a.seconds(1e6, n, link), 0) << a.name;
    }
}

TEST(Plan, NamesAreFoundAndUnknownOnesRefused) {
  for (const Algorithm& a : all_reduce_algorithms()) EXPECT_EQ(find_algorithm(a.name).name, a.name);
  try {
    find_algorithm("rign");
    FAIL();
  } catch (const std::exception& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 'ring'"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace echelon
