#include "kernels/relayout.h"

#include <gtest/gtest.h>

#include "tests/kernels/activation.h"

namespace echelon::kernels {
namespace {

using namespace test;

TEST(Relayout, moves_every_element_and_zeroes_idle_lanes) {
  for (const Shape& s : {Shape{1, 1, 1, 1}, Shape{64, 1, 28, 28}, Shape{3, 8, 5, 7}, Shape{13, 16, 3, 3},
                         Shape{8, 24, 4, 4}, Shape{5, 3, 11, 2}, Shape{17, 5, 1, 1}, Shape{2, 64, 1, 1}})
    for (const Layout from : all_layouts)
      for (const Layout to : all_layouts) {
        if (!fits(s, from) || !fits(s, to)) continue;
        SCOPED_TRACE(fmt::format("{} {} -> {}", to_string(s), name_of(from), name_of(to)));
        const auto x = random_values(s.elements(), 1);
        Activation in(s, from, x, from == to ? 0.0f : 777.0f), out(s, to), twin(s, to);
        const Activation expected(s, to, x, 0.0f);
        relayout(s, from, in.data(), to, out.data());
        ref_relayout(s, from, in.data(), to, twin.data());
        const auto stored = static_cast<std::size_t>(stored_elements(s, to));
        for (std::size_t i = 0; i < stored; ++i) {
          ASSERT_EQ(out.data()[i], expected.data()[i]) << i;
          ASSERT_EQ(twin.data()[i], expected.data()[i]) << i;
        }
      }
}

}  // namespace
}  // namespace echelon::kernels
