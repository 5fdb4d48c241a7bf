// Codec auto: takes the quickest on slow links, nothing on fast ones and in shared memory, and takes it back when it
// was wrong.

#include "parallel/sum/auto_sum.h"

#include <gtest/gtest.h>

#include <cmath>

#include "collective/all_reduce.h"
#include "tests/codec/cases.h"
#include "world/launch.h"
#include "world/sim/simulation.h"
#include "world/wrappers/metered.h"

namespace echelon {
namespace {

const std::vector<CodecPiece> pieces{{.size = 300 * 400, .rows = 300}, {.size = 400}};

std::vector<NamedCodec> candidates() {
  return {{"fp16", test::codec_maker("name = 'fp16'")},
          {"one_bit", test::codec_maker("name = 'one_bit'")},
          {"top_k", test::codec_maker("name = 'top_k'\nshare = 0.001")}};
}

void plain(Group& group, std::span<float> values) { all_reduce(group, values); }

// Runs some exchanges and returns what was chosen in the end, the same everywhere.
std::string choice(const SimCluster& cluster, int ranks, std::vector<NamedCodec> from, int exchanges = 3) {
  std::vector<std::string> chosen(static_cast<std::size_t>(ranks));
  const SimReport report = run_in_simulation(cluster, {}, [&](World& world) {
    Group group = Group::everyone(world);
    AutoSum sum(from, pieces, ranks, world.rank());
    for (int i = 0; i < exchanges; ++i) {
      auto x = test::gradient(pieces, static_cast<std::uint32_t>(world.rank()));
      sum.run(group, x, test::step_of(i), plain);
    }
    chosen[static_cast<std::size_t>(world.rank())] = sum.chosen();
  });
  report.throw_if_failed();
  for (const std::string& c : chosen) EXPECT_EQ(c, chosen[0]);
  return chosen[0];
}

TEST(AutoSum, TakesFewBytesOnSlowLinks) {
  EXPECT_EQ(choice(SimCluster::uniform(4, 1e-5, 1e6), 4, candidates()), "top_k");
  EXPECT_EQ(choice(SimCluster::uniform(4, 1e-5, 1e6), 4, {candidates()[0]}), "fp16");
}

TEST(AutoSum, TakesPlainNumbersWhereLatencyIsAll) {
  const SimCluster far = SimCluster::uniform(4, 1.0, 1e12);
  EXPECT_EQ(choice(far, 4, {candidates()[0], candidates()[2]}), "none");
  // One meeting fewer looks quicker there; the first check sees that it is not.
  EXPECT_EQ(choice(far, 4, candidates(), AutoSum::first_check + 1), "none");
}

TEST(AutoSum, TakesPlainNumbersInSharedMemory) {
  run_in_threads(2, {}, [&](World& world) {
    Group group = Group::everyone(world);
    AutoSum sum(candidates(), pieces, 2, world.rank());
    auto x = test::gradient(pieces, 1), y = x;
    sum.run(group, x, test::step_of(0), plain);
    if (sum.chosen() != "none") fail("{} was chosen in shared memory", sum.chosen());
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i] != 2 * y[i]) fail("the sum is wrong");
  });
}

TEST(AutoSum, TakesACodecOnALimitedLinkBetweenThreads) {
  run_in_threads(2, {}, [&](World& inner) {
    const auto world = make_metered(inner, {.bytes_per_second = 2e6});
    Group group = Group::everyone(*world);
    AutoSum sum(candidates(), pieces, 2, world->rank());
    auto x = test::gradient(pieces, 1);
    sum.run(group, x, test::step_of(0), plain);
    if (sum.chosen() == "none") fail("nothing was chosen on a slow link");
  });
}

// A codec that is quick while it is tried and slow afterwards.
class Pretender : public Codec {
 public:
  Pretender(std::unique_ptr<Codec> inner, World& world, const bool& slow)
      : inner_(std::move(inner)), world_(world), slow_(slow) {}
  Traits traits() const override { return inner_->traits(); }
  std::size_t most_bytes() const override { return inner_->most_bytes(); }
  double usual_bytes() const override { return inner_->usual_bytes(); }
  std::size_t encode(std::span<const float> values, const CodecStep& step, std::span<std::byte> out) override {
    if (slow_) world_.sleep(10);
    return inner_->encode(values, step, out);
  }
  void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const override {
    inner_->add(bytes, scale, out);
  }
  std::vector<State> state() override { return inner_->state(); }

 private:
  std::unique_ptr<Codec> inner_;
  World& world_;
  const bool& slow_;
};

// `resumed`: the state is carried over to a fresh one just after the fall.
void fall_back(bool resumed) {
  constexpr int ranks = 3;
  const std::size_t n = test::total(pieces);
  std::vector<double> wanted(n), got(n);
  const SimReport report = run_in_simulation(SimCluster::uniform(ranks, 1e-5, 1e6), {}, [&](World& world) {
    Group group = Group::everyone(world);
    bool slow = false;
    const CodecMaker top = test::codec_maker("name = 'top_k'");
    const auto fresh = [&] {
      return std::make_unique<AutoSum>(
          std::vector<NamedCodec>{
              {"top_k",
               [&](const std::vector<CodecPiece>& p) { return std::make_unique<Pretender>(top(p), world, slow); }}},
          pieces, ranks, world.rank());
    };
    auto sum = fresh();
    for (int i = 0; i < AutoSum::first_check + 2; ++i) {
      const auto x = test::gradient(pieces, static_cast<std::uint32_t>(world.rank() * 100 + i));
      auto y = x;
      sum->run(group, y, test::step_of(i), plain);
      if (sum->chosen() != (i + 1 < AutoSum::first_check ? "top_k" : "none"))
        fail("{} is chosen after exchange {}", sum->chosen(), i);
      if (resumed && i + 1 == AutoSum::first_check) {
        auto again = fresh();
        const auto from = sum->state(), to = again->state();
        for (std::size_t k = 0; k < from.size(); ++k) std::ranges::copy(from[k].bytes, to[k].bytes.begin());
        sum = std::move(again);
      }
      slow = i > 0;
      for (std::size_t k = 0; k < n; ++k) {
        wanted[k] += x[k];  // one rank after the other: fibers
        if (world.rank() == 0) got[k] += y[k];
      }
    }
  });
  report.throw_if_failed();
  for (std::size_t k = 0; k < n; ++k) ASSERT_NEAR(got[k], wanted[k], 1e-4) << k;
}

TEST(AutoSum, FallsBackToPlainNumbersWhenTheyAreQuickerAndLosesNothing) { fall_back(false); }
TEST(AutoSum, LosesNothingIfARunIsResumedJustAfterwards) { fall_back(true); }

TEST(AutoSum, KeepsACodecThatIsQuicker) {
  EXPECT_EQ(choice(SimCluster::uniform(4, 1e-5, 1e6), 4, candidates(), AutoSum::first_check + 3), "top_k");
}

TEST(AutoSum, ReadsItsCandidates) {
  Options table = parse_toml("name = 'auto'\ncandidates = ['bf16', 'dgc']", "test");
  Problems problems;
  OptionReader reader(table, problems);
  const auto choice = read_codec_choice(reader);
  EXPECT_TRUE(problems.empty());
  ASSERT_EQ(choice.size(), 2u);
  EXPECT_EQ(choice[1].name, "dgc");
  Options wrong = parse_toml("name = 'auto'\ncandidates = ['bf61']\nshare = 1", "test");
  OptionReader other(wrong, problems);
  read_codec_choice(other);
  EXPECT_NE(problems.text("test").find("bf16"), std::string::npos);
  EXPECT_NE(problems.text("test").find("share"), std::string::npos);
}

}  // namespace
}  // namespace echelon
