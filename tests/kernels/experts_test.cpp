#include "kernels/experts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "base/random.h"

namespace echelon::kernels {
namespace {

struct Routed {
  explicit Routed(const Experts& e, std::uint64_t seed = 1)
      : p(e.rows * e.experts), gate(e.rows * e.top), load(e.experts), choice(e.rows * e.top), slot(e.rows * e.top) {
    const Stream s({.seed = seed});
    for (std::size_t r = 0; r < e.rows; ++r) {
      float sum = 0;
      for (std::size_t k = 0; k < e.experts; ++k) sum += p[r * e.experts + k] = 0.05f + s.uniform(r * e.experts + k);
      for (std::size_t k = 0; k < e.experts; ++k) p[r * e.experts + k] /= sum;
    }
    std::vector<std::int32_t> places(e.experts);
    route(e, p.data(), choice.data(), slot.data(), gate.data(), load.data(), places.data());
  }
  std::vector<float> p, gate, load;
  std::vector<std::int32_t> choice, slot;
};

TEST(Experts, EveryRowGoesToTheMostProbableAndNoExpertTakesMoreThanItsRoom) {
  for (std::size_t top : {1u, 2u})
    for (std::size_t capacity : {1u, 3u, 40u}) {
      const Experts e{.rows = 37, .experts = 5, .top = top, .capacity = capacity};
      const Routed routed(e);
      std::set<std::int32_t> taken;
      std::vector<std::size_t> wanted(e.experts), got(e.experts);
      float load = 0;
      for (float l : routed.load) load += l;
      EXPECT_NEAR(load, 1, 1e-5);
      for (std::size_t r = 0; r < e.rows; ++r) {
        std::vector<float> sorted(routed.p.begin() + static_cast<std::ptrdiff_t>(r * e.experts),
                                  routed.p.begin() + static_cast<std::ptrdiff_t>((r + 1) * e.experts));
        std::ranges::sort(sorted, std::greater());
        float gates = 0;
        for (std::size_t k = 0; k < top; ++k) {
          const auto expert = static_cast<std::size_t>(routed.choice[r * top + k]);
          EXPECT_EQ(routed.p[r * e.experts + expert], sorted[k]);
          gates += routed.gate[r * top + k];
          ++wanted[expert];
          const std::int32_t slot = routed.slot[r * top + k];
          if (slot < 0) continue;
          EXPECT_TRUE(taken.insert(slot).second) << "two rows in one slot";
          EXPECT_EQ(static_cast<std::size_t>(slot) / capacity, expert);
          ++got[expert];
        }
        EXPECT_NEAR(gates, top == 1 ? sorted[0] : 1, 1e-6);
      }
      for (std::size_t k = 0; k < e.experts; ++k) EXPECT_EQ(got[k], std::min(wanted[k], capacity));
    }
}

TEST(Experts, FirstChoicesComeBeforeSecondOnes) {
  const float p[] = {0.1f, 0.9f, 0.9f, 0.1f};  // row 0 wants expert 1 then 0; row 1 wants 0 then 1
  const Experts e{.rows = 2, .experts = 2, .top = 2, .capacity = 1};
  std::int32_t choice[4], slot[4], places[2];
  float gate[4], load[2];
  route(e, p, choice, slot, gate, load, places);
  EXPECT_EQ(std::vector<std::int32_t>(slot, slot + 4), (std::vector<std::int32_t>{1, -1, 0, -1}));
}

TEST(Experts, PartsOfTheExpertsAddUpToAll) {
  const Experts e{.rows = 20, .experts = 4, .top = 2, .capacity = 8};
  const Routed routed(e);
  const std::size_t width = 7, slots = e.experts * e.capacity;
  std::vector<float> x(e.rows * width), all(slots * width), out(e.rows * width), sum(e.rows * width);
  const Stream s({.seed = 7});
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = s.normal(i);
  dispatch(e, {0, static_cast<std::int32_t>(slots)}, routed.slot.data(), x.data(), all.data(), width);
  combine(e, {0, static_cast<std::int32_t>(slots)}, routed.slot.data(), routed.gate.data(), all.data(), out.data(),
          width);
  for (std::int32_t first : {0, 16}) {
    std::vector<float> half(slots / 2 * width), part(e.rows * width);
    dispatch(e, {first, 16}, routed.slot.data(), x.data(), half.data(), width);
    EXPECT_TRUE(std::ranges::equal(half, std::span(all).subspan(static_cast<std::size_t>(first) * width, half.size())));
    combine(e, {first, 16}, routed.slot.data(), routed.gate.data(), half.data(), part.data(), width);
    for (std::size_t i = 0; i < part.size(); ++i) sum[i] += part[i];
  }
  for (std::size_t r = 0; r < e.rows; ++r) {
    float kept = 0;
    for (std::size_t k = 0; k < e.top; ++k) kept += routed.slot[r * e.top + k] < 0 ? 0 : routed.gate[r * e.top + k];
    for (std::size_t c = 0; c < width; ++c) {
      EXPECT_NEAR(out[r * width + c], kept * x[r * width + c], 1e-5);
      EXPECT_NEAR(sum[r * width + c], out[r * width + c], 1e-5);
    }
  }
}

}  // namespace
}  // namespace echelon::kernels
