// Sparse sums by recursive doubling, and sums through codecs every way there is: the right numbers, the same bits on
// all members, and the bytes that are announced.

#include "parallel/sum/sparse_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

#include "base/error.h"
#include "codec/wire/sparse_stream.h"
#include "parallel/sum/coded_sum.h"
#include "tests/codec/cases.h"
#include "world/launch.h"
#include "world/sim/simulation.h"
#include "world/wrappers/metered.h"

namespace echelon {
namespace {

// One number in `every` is not zero, at places of the rank's own.
std::vector<float> sparse_numbers(int rank, std::size_t n, std::uint32_t every, std::uint32_t step = 0) {
  const Stream random({.seed = 3, .step = step, .shard = static_cast<std::uint32_t>(rank)});
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i)
    if (random.below(every, i) == 0) x[i] = random.normal(i + n);
  return x;
}

SimReport simulate_sum(int ranks, const Program& program, double bytes_per_second = 1.25e9) {
  const SimReport report = run_in_simulation(SimCluster::uniform(ranks, 5e-6, bytes_per_second), {}, program);
  report.throw_if_failed();
  return report;
}

TEST(SparseStream, MergesToTheSum) {
  for (const std::size_t n : {1u, 100u, 40000u, 100001u})
    for (const std::uint32_t every : {1u, 3u, 100u}) {
      const auto a = sparse_numbers(0, n, every), b = sparse_numbers(1, n, every);
      std::vector<std::byte> x(codecs::stream_bytes(n, n)), y(x.size()), z(2 * x.size());
      x.resize(codecs::write_stream(a, x));
      y.resize(codecs::write_stream(b, y));
      z.resize(codecs::merge_streams(x, y, n, z));
      std::vector<float> sum(n);
      codecs::add_stream(z, sum);
      std::size_t entries = 0;
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(sum[i], a[i] + b[i]);
        entries += a[i] != 0 || b[i] != 0;
      }
      EXPECT_EQ(z.size(), codecs::stream_bytes(n, entries));
    }
}

TEST(SparseStream, RefusesWhatIsNoStream) {
  const auto a = sparse_numbers(0, 1000, 10);
  std::vector<std::byte> x(codecs::stream_bytes(1000, 1000)), out(2 * x.size());
  EXPECT_EQ(codecs::write_stream(a, std::span(x).first(50)), 0u);  // no room
  x.resize(codecs::write_stream(a, x));
  std::vector<float> sum(1000);
  for (std::size_t size = 0; size < x.size(); ++size) {
    EXPECT_THROW(codecs::add_stream(std::span(x).first(size), sum), Failure);
    EXPECT_THROW(codecs::merge_streams(x, std::span(x).first(size), 1000, out), Failure);
  }
  auto wild = x;
  wild[2] = wild[3] = std::byte{0x7F};  // a place beyond the end
  EXPECT_THROW(codecs::add_stream(wild, sum), Failure);
}

TEST(SparseSum, IsTheSumWithTheSameBitsOnAll) {
  for (const bool may_switch : {false, true})
    for (const int n : {1, 2, 3, 4, 6, 8, 13})
      for (const std::uint32_t every : {1u, 4u, 200u}) {
        constexpr std::size_t numbers = 40000;
        std::vector<double> wanted(numbers);
        for (int r = 0; r < n; ++r) {
          const auto x = sparse_numbers(r, numbers, every);
          for (std::size_t i = 0; i < numbers; ++i) wanted[i] += x[i];
        }
        std::vector<std::vector<float>> results(static_cast<std::size_t>(n));
        simulate_sum(n, [&](World& world) {
          Group group = Group::everyone(world);
          SparseSum sum(numbers, may_switch);
          for (int time = 0; time < 2; ++time) {
            auto x = sparse_numbers(world.rank(), numbers, every);
            sum.run(group, x);
            results[static_cast<std::size_t>(world.rank())] = x;
          }
        });
        for (const auto& result : results)
          ASSERT_EQ(std::memcmp(result.data(), results[0].data(), numbers * sizeof(float)), 0) << n;
        for (std::size_t i = 0; i < numbers; ++i) ASSERT_NEAR(results[0][i], wanted[i], 1e-5) << n;
      }
}

TEST(SparseSum, SendsWhatIsAnnouncedAndTurnsDenseWhereThatIsLess) {
  constexpr std::size_t numbers = 50000;
  constexpr int n = 16;
  const auto bytes = [&](std::uint32_t every, bool may_switch) {
    const SimReport report = simulate_sum(n, [&](World& world) {
      Group group = Group::everyone(world);
      auto x = sparse_numbers(world.rank(), numbers, every);
      SparseSum(numbers, may_switch).run(group, x, {.link_per_byte = 1e-6});
    });
    double sent = 0, messages = 0;
    for (const SimRankReport& r : report.ranks)
      sent += static_cast<double>(r.bytes_sent), messages += static_cast<double>(r.messages_sent);
    const double entries = static_cast<double>(numbers) / every;
    const SparseTraffic usual = sparse_sum_traffic(n, numbers, entries, may_switch, false);
    EXPECT_EQ(messages, usual.messages);
    EXPECT_NEAR(sent, usual.bytes, 0.05 * usual.bytes);  // places are drawn
    EXPECT_LE(sent, sparse_sum_traffic(n, numbers, 1.1 * entries, may_switch, true).bytes);
    return sent;
  };
  const double dense = 4.0 * numbers * n * 4;  // four exchanges of everything
  EXPECT_LT(bytes(1000, true), 0.03 * dense);
  EXPECT_EQ(bytes(1000, true), bytes(1000, false));  // too sparse for the dense form to come in
  EXPECT_LT(bytes(5, true), 0.95 * bytes(5, false));
  EXPECT_LT(bytes(2, true), 0.85 * bytes(2, false));
  EXPECT_LT(bytes(2, true), 1.001 * dense);
}

// Every way gives the sum of what the members' codecs say, the same bits everywhere; in threads, too.
TEST(CodedSum, EveryWaySumsWhatTheCodecsSay) {
  const std::vector<CodecPiece> pieces{{.size = 20 * 301, .rows = 20}, {.size = 301}, {.size = 10}};
  const std::size_t numbers = test::total(pieces);
  for (const char* settings :
       {"name = 'none'", "name = 'fp16'", "name = 'top_k'\nshare = 0.05\nerror_feedback = false"})
    for (const auto way : {CodedSum::Way::gather, CodedSum::Way::owners, CodedSum::Way::doubling, CodedSum::Way::split,
                           CodedSum::Way::butterfly})
      for (const int n : {1, 3, 4}) {
        const CodecMaker maker = test::codec_maker(settings);
        std::mutex lock;
        std::map<int, std::vector<float>> results;
        run_in_threads(n, {}, [&](World& world) {
          Group group = Group::everyone(world);
          CodedSum sum(way, maker, pieces, n, world.rank());
          auto x = test::gradient(pieces, static_cast<std::uint32_t>(world.rank()));
          sum.run(group, x, test::step_of(1));
          const std::lock_guard guard(lock);
          results[world.rank()] = x;
        });
        std::vector<double> wanted(numbers);
        std::vector<float> said(numbers);
        for (int r = 0; r < n; ++r) {
          const auto codec = maker(pieces);
          std::vector<std::byte> bytes(codec->most_bytes());
          codec->decode(std::span(bytes).first(codec->encode(test::gradient(pieces, static_cast<std::uint32_t>(r)),
                                                             test::step_of(1), bytes)),
                        said);
          for (std::size_t i = 0; i < numbers; ++i) wanted[i] += said[i];
        }
        for (int r = 0; r < n; ++r) {
          ASSERT_EQ(results[r], results[0]);
          // The owners' sums go through the codec once more, and a share of each part is not the same share of all.
          if (way == CodedSum::Way::owners && std::string_view(settings).find("top_k") != std::string_view::npos)
            continue;
          for (std::size_t i = 0; i < numbers; ++i)
            ASSERT_NEAR(results[r][i], wanted[i], 2e-3 * (0.01 + std::abs(wanted[i])));
        }
      }
}

TEST(CodedSum, GivesBackWhatErrorFeedbackHolds) {
  const std::vector<CodecPiece> pieces{{.size = 500}};
  for (const auto way : {CodedSum::Way::gather, CodedSum::Way::owners, CodedSum::Way::doubling, CodedSum::Way::split,
                         CodedSum::Way::butterfly}) {
    constexpr int n = 3;
    std::vector<double> wanted(500), got(500);
    for (int r = 0; r < n; ++r)
      for (std::uint32_t step = 0; step < 4; ++step) {
        const auto x = test::gradient(pieces, static_cast<std::uint32_t>(r) * 10 + step);
        for (std::size_t i = 0; i < 500; ++i) wanted[i] += x[i];
      }
    simulate_sum(n, [&](World& world) {
      Group group = Group::everyone(world);
      CodedSum sum(way, test::codec_maker("name = 'top_k'"), pieces, n, world.rank());
      for (std::uint32_t step = 0; step < 4; ++step) {
        auto x = test::gradient(pieces, static_cast<std::uint32_t>(world.rank()) * 10 + step);
        sum.run(group, x, test::step_of(static_cast<int>(step)));
        for (std::size_t i = 0; i < 500 && world.rank() == 0; ++i) got[i] += x[i];
      }
      std::vector<float> left(500), again(500);
      sum.give_back(left);
      sum.give_back(again);
      for (std::size_t i = 0; i < 500; ++i) {
        got[i] += left[i];  // one rank after the other: fibers
        if (again[i] != 0) fail("it was given back twice");
      }
    });
    for (std::size_t i = 0; i < 500; ++i) ASSERT_NEAR(got[i], wanted[i], 1e-5) << i;
  }
}

TEST(CodedSum, TheQuickestWayFollowsTheLinks) {
  const LinkCosts slow_start{.latency = 1e-3, .per_byte = 1e-9}, slow_wire{.latency = 1e-6, .per_byte = 1e-7};
  using Way = CodedSum::Way;
  constexpr std::size_t numbers = 1000000;
  // Few bytes on links that are slow to start: few exchanges. Many on slow wires: few bytes.
  EXPECT_EQ(CodedSum::quickest_way({.traits = {.sparse = true}, .bytes = 600}, numbers, 32, slow_start), Way::doubling);
  EXPECT_EQ(CodedSum::quickest_way({.bytes = 2e6}, numbers, 32, slow_wire), Way::owners);
  EXPECT_EQ(CodedSum::quickest_way({.bytes = 600}, numbers, 4, slow_start), Way::gather);
  EXPECT_NE(CodedSum::quickest_way({.bytes = 600}, numbers, 32, slow_start),
            Way::doubling);  // a dense codec is no stream
}

// Every member brings one number in `every` at places of its own (or `common` ones); returns what the others sent, in
// the second and the third sum.
struct Sums {
  double first = 0, again = 0;  // bytes of all members
  double error = 0;
};

template <typename MakeSum>
Sums sums_of(int n, std::uint32_t every, bool common, const MakeSum& make) {
  constexpr std::size_t numbers = 20000;
  std::vector<double> wanted(numbers), first(static_cast<std::size_t>(n)), again(first);
  std::vector<std::vector<float>> got(first.size());
  for (int r = 0; r < n; ++r) {
    const auto x = sparse_numbers(common ? 0 : r, numbers, every);
    for (std::size_t i = 0; i < numbers; ++i) wanted[i] += x[i];
  }
  simulate_sum(n, [&](World& inner) {
    const auto world = make_metered(inner);
    const auto rank = static_cast<std::size_t>(world->rank());
    Group group = Group::everyone(*world);
    const auto run = make(world->rank());
    const auto x = sparse_numbers(common ? 0 : world->rank(), numbers, every);
    for (double* bytes : {&first[rank], &again[rank]}) {
      const auto before = world->sent()->bytes;
      got[rank] = x;
      run(group, std::span<float>(got[rank]));
      *bytes = static_cast<double>(world->sent()->bytes - before);
    }
  });
  Sums s;
  for (std::size_t r = 0; r < first.size(); ++r) {
    s.first += first[r], s.again += again[r];
    EXPECT_EQ(got[r], got[0]) << "member " << r;
  }
  for (std::size_t i = 0; i < numbers; ++i) s.error = std::max(s.error, std::abs(got[0][i] - wanted[i]));
  return s;
}

Sums butterfly(const std::vector<int>& degrees, std::uint32_t every, bool common) {
  int n = 1;
  for (const int d : degrees) n *= d;
  return sums_of(n, every, common, [&](int index) {
    auto sum = std::make_shared<ButterflySum>(20000, degrees, index);
    return [sum](Group& group, std::span<float> values) { sum->run(group, values); };
  });
}

TEST(ButterflySum, IsTheSumWithTheSameBitsOnAll) {
  for (const auto& degrees : std::vector<std::vector<int>>{{}, {2}, {3}, {2, 2, 2}, {4, 2}, {2, 4}, {3, 2, 2}, {8}})
    for (const bool common : {false, true})
      for (const std::uint32_t every : {1u, 7u, 300u}) EXPECT_LT(butterfly(degrees, every, common).error, 1e-4);
}

TEST(ButterflySum, SendsValuesAloneWhileThePlacesStay) {
  const Sums s = butterfly({4, 2}, 100, false);
  const double sizes = 8 * (2 * 8 * (3 + 1));  // of 8 members' lists to 3 and 1 others, down and up
  EXPECT_NEAR(s.again - sizes, (s.first - sizes) / 2, 1e-9);
}

TEST(ButterflySum, SendsFewerBytesThanDoublingWhereTheUnionIsSmall) {
  constexpr int n = 8;
  const Sums kylix = butterfly({4, 2}, 100, true);
  const Sums sparcml = sums_of(n, 100, true, [](int) {
    auto sum = std::make_shared<SparseSum>(20000, true);
    return [sum](Group& group, std::span<float> values) { sum->run(group, values); };
  });
  EXPECT_LT(kylix.first, 0.85 * sparcml.first);  // 2 (n-1)/n lists of 8 bytes a number against log2 n of 6
  EXPECT_LT(kylix.again, 0.45 * sparcml.again);
}

TEST(ButterflySum, HasFewLayersWhereListsAreLong) {
  EXPECT_EQ(butterfly_degrees(64, 64 * 4096, 4096), (std::vector<int>{64}));
  EXPECT_EQ(butterfly_degrees(64, 16 * 4096, 4096), (std::vector<int>{16, 4}));
  EXPECT_EQ(butterfly_degrees(64, 100, 4096), (std::vector<int>{2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(butterfly_degrees(15, 100, 4096), (std::vector<int>{3, 5}));
  EXPECT_EQ(butterfly_degrees(1, 100, 4096), (std::vector<int>{}));
}

Sums split(int n, std::uint32_t every, const CodecMaker& dense) {
  return sums_of(n, every, false, [&, n](int index) {
    auto sum = std::make_shared<SplitSum>(20000, n, index, true, dense);
    return [sum](Group& group, std::span<float> values) { sum->run(group, values, {}, test::step_of(0)); };
  });
}

TEST(SplitSum, IsTheSumWithTheSameBitsOnAll) {
  for (const int n : {1, 2, 3, 8, 13})
    for (const std::uint32_t every : {1u, 4u, 200u}) EXPECT_LT(split(n, every, {}).error, 1e-4) << n;
}

TEST(SplitSum, SendsDenseSumsInFewBits) {
  const CodecMaker eight_bits = test::codec_maker("name = 'qsgd'\nlevels = 127\nnorm = 'max'");
  const Sums plain = split(8, 3, {}), quantised = split(8, 3, eight_bits);
  EXPECT_LT(quantised.first, 0.75 * plain.first);
  EXPECT_GT(quantised.error, 1e-4);
  EXPECT_LT(quantised.error, 0.2);                    // a level of the largest of 512
  EXPECT_LT(split(8, 2000, eight_bits).error, 1e-4);  // still sparse
}

TEST(SplitSum, IsTakenForWhatIsLargeAndDense) {
  using Way = CodedSum::Way;
  const auto way = [](double entries, std::size_t numbers, int n) {
    return CodedSum::sparse_way(entries, numbers, n, {});
  };
  EXPECT_EQ(way(500, 50'000, 4), Way::doubling);
  EXPECT_EQ(way(20'000, 2'000'000, 4), Way::doubling);  // little grows on the way
  EXPECT_EQ(way(500, 50'000, 64), Way::doubling);       // many messages for little
  EXPECT_EQ(way(200'000, 20'000'000, 64), Way::split);
  EXPECT_EQ(way(4'000'000, 20'000'000, 8), Way::split);  // dense
}

}  // namespace
}  // namespace echelon
