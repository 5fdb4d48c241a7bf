// The state machine of membership, and the texts that carry it.

#include "member/membership.h"

#include <gtest/gtest.h>

#include "member/memory_store.h"
#include "member/store_messages.h"

namespace echelon {

namespace {

MemberNode node(const std::string& id, std::int64_t step = -1) {
  return {.id = id, .step = step, .offer = {.host_id = id, .address = "10.0.0.1", .ports = {4000, 4001}, .seed = 7}};
}

const std::string session = "5d1f8a03c7e94b26a8f0d36e1b9c74f2205e8ad7c1934fb6e08d72a3915cfb4e",
                  other_session = "93c07be52fa816d4e7b3590cd8a142f6b01d6ef4387ac925d86f31e70b5a9c2d";

Membership formed(int least, int most, const std::vector<MemberNode>& nodes) {
  Membership m{.least = least, .most = most};
  for (const MemberNode& n : nodes) make_ready(m, n);
  EXPECT_TRUE(may_form(m));
  form(m, session);
  return m;
}

TEST(Membership, FormsOnceEnoughAreReady) {
  Membership m{.least = 2, .most = 3};
  make_ready(m, node("a"));
  EXPECT_FALSE(may_form(m));
  make_ready(m, node("b"));
  EXPECT_TRUE(may_form(m));
  form(m, session);
  EXPECT_EQ(m.generation, 1);
  EXPECT_EQ(m.running(), 2);
  EXPECT_TRUE(m.whole());
  EXPECT_FALSE(may_form(m)) << "both are in it";
}

TEST(Membership, TheNewestStateComesFirstAndSparesWait) {
  const Membership m = formed(1, 2, {node("a", 3), node("b", 5), node("c", 4)});
  EXPECT_EQ(m.nodes[0].id, "b");
  EXPECT_EQ(m.nodes[1].id, "c");
  EXPECT_TRUE(m.waits(m.nodes[2])) << "a is a spare";
  EXPECT_EQ(m.step, 5);
  EXPECT_FALSE(wants_change(m)) << "there is no room for it";
}

TEST(Membership, WaitsForEveryNodeOfTheGenerationToStop) {
  Membership m = formed(1, 3, {node("a"), node("b"), node("c")});
  make_ready(m, node("a", 9));
  make_ready(m, node("b", 9));
  EXPECT_FALSE(may_form(m)) << "c may still do steps";
  EXPECT_FALSE(m.whole());
  remove(m, "c");
  EXPECT_TRUE(may_form(m));
  form(m, other_session);
  EXPECT_EQ(m.generation, 2);
  EXPECT_EQ(m.session, other_session);
}

TEST(Membership, ANodeThatLeavesNeitherCountsNorIsTaken) {
  Membership m = formed(1, 3, {node("a"), node("b")});
  m.nodes[1].leaving = true;
  EXPECT_TRUE(wants_change(m));
  make_ready(m, node("a", 4));
  make_ready(m, node("b", 4));
  EXPECT_EQ(m.waiting(), 1) << "being ready does not take the wish back";
  Membership two = m;
  two.least = 2;
  EXPECT_FALSE(may_form(two));
  form(m, other_session);
  EXPECT_EQ(m.running(), 1);
  EXPECT_TRUE(m.has(*m.find("a")));
}

TEST(Membership, ANewcomerWithRoomWantsAChange) {
  Membership m = formed(1, 2, {node("a")});
  EXPECT_FALSE(wants_change(m));
  make_ready(m, node("b"));
  EXPECT_TRUE(wants_change(m));
}

TEST(Membership, TheTableHasTheRanksInTheOrderOfTheNodes) {
  const Membership m = formed(1, 3, {node("a", 1), node("b", 2)});
  const tcp::JobTable of_a = table_for(m, "a"), of_b = table_for(m, "b");
  EXPECT_EQ(of_b.first_rank, 0);
  EXPECT_EQ(of_a.first_rank, 2);
  EXPECT_EQ(of_a.peers.size(), 4u);
  EXPECT_EQ(of_a.session, of_b.session);
}

TEST(Membership, ReliableNodesHaveTheFirstRanksAmongThoseWithTheNewestState) {
  MemberNode spot = node("spot", 5), other = node("spot-2", 5), reliable = node("reliable", 5), late = node("late", 3);
  spot.transient = other.transient = true;
  const Membership m = formed(1, 4, {spot, late, other, reliable});
  std::vector<std::string> order;
  for (const MemberNode& n : m.nodes) order.push_back(n.id);
  EXPECT_EQ(order, (std::vector<std::string>{"reliable", "spot", "spot-2", "late"}));
}

TEST(Membership, SurvivesItsText) {
  Membership m = formed(1, 2, {node("a", 3), node("b", 5), node("c")});
  m.nodes[0].leaving = m.nodes[1].transient = true;
  EXPECT_EQ(read_membership(write_membership(m)), m);
  end(m, "rank 3: out of luck");
  EXPECT_EQ(read_membership(write_membership(m)), m);
  EXPECT_THROW(read_membership("{}"), BadInput);
  EXPECT_THROW(read_membership("[1]"), BadInput);
  EXPECT_THROW(read_membership(R"({"generation":-1})"), BadInput);
}

// A store that is asked through texts says what the store itself says.
class ThroughTexts final : public RemoteStore {
 public:
  explicit ThroughTexts(Store& store) : store_(store) {}

 protected:
  std::string ask(const std::string& question) override { return answer_store_question(store_, question); }

 private:
  Store& store_;
};

TEST(Store, ComparesAndSwapsAndForgetsLeases) {
  double now = 0;
  MemoryStore inner([&] { return now; });
  ThroughTexts store(inner);
  EXPECT_EQ(store.read("k").revision, 0u);
  EXPECT_TRUE(store.write_if("k", 0, "one"));
  EXPECT_FALSE(store.write_if("k", 0, "two")) << "it is there";
  const Store::Entry one = store.read("k");
  EXPECT_EQ(one.text, "one");
  EXPECT_TRUE(store.write_if("k", one.revision, "two"));
  EXPECT_FALSE(store.write_if("k", one.revision, "three")) << "somebody was faster";

  const Store::Lease a = store.grant(2, "node/a", "");
  store.grant(2, "node/b", "");
  now = 1.5;
  EXPECT_TRUE(store.renew(a));
  now = 3;
  EXPECT_EQ(store.list("node/"), std::vector<std::string>{"node/a"});
  store.revoke(a);
  EXPECT_TRUE(store.list("node/").empty());
  EXPECT_FALSE(store.renew(a));
}

TEST(Store, AnswersNonsenseWithAnError) {
  MemoryStore inner([] { return 0.0; });
  for (const char* question : {"", "{", "[]", "{}", R"({"call":"jump"})", R"({"call":"read"})",
                               R"({"call":"write_if","key":"k","revision":-1,"text":"x"})",
                               R"({"call":"grant","key":"k","seconds":1e9,"text":""})"})
    EXPECT_NE(answer_store_question(inner, question).find("\"error\""), std::string::npos) << question;
}

}  // namespace

}  // namespace echelon
