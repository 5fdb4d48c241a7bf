#include "collective/combine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/random.h"

namespace echelon {
namespace {

template <typename T>
void compare(ElementType type) {
  const Stream stream({.seed = 5});
  for (const std::size_t n : {0u, 1u, 3u, 7u, 8u, 9u, 31u, 32u, 33u, 1000u})
    for (const Reduction reduction : {Reduction::sum, Reduction::min, Reduction::max})
      for (const std::size_t shift : {0u, 1u}) {  // memory of no particular alignment
        std::vector<std::byte> a(n * sizeof(T) + 9), b(a), got(a), want(a);
        for (std::size_t i = 0; i < n; ++i) {
          const T x = static_cast<T>(stream.normal(i) * 1000), y = static_cast<T>(stream.normal(i + n) * 1000);
          std::memcpy(&a[shift + i * sizeof(T)], &x, sizeof(T));
          std::memcpy(&b[shift + i * sizeof(T)], &y, sizeof(T));
        }
        combine(type, reduction, got.data() + shift, a.data() + shift, b.data() + shift, n);
        ref_combine(type, reduction, want.data() + shift, a.data() + shift, b.data() + shift, n);
        EXPECT_EQ(got, want) << to_string(type) << " " << to_string(reduction) << " " << n;
        combine(type, reduction, a.data() + shift, a.data() + shift, b.data() + shift, n);  // in place
        EXPECT_EQ(std::memcmp(a.data() + shift, want.data() + shift, n * sizeof(T)), 0);
      }
}

TEST(Combine, AgreesWithItsReadableTwin) {
  compare<float>(ElementType::float32);
  compare<double>(ElementType::float64);
  compare<std::int32_t>(ElementType::int32);
  compare<std::int64_t>(ElementType::int64);
}

TEST(Combine, DividesIntegersTowardsZero) {
  std::vector<std::int32_t> x{7, -7, 6, 0};
  divide(ElementType::int32, reinterpret_cast<std::byte*>(x.data()), x.size(), 3);
  EXPECT_EQ(x, (std::vector<std::int32_t>{2, -2, 2, 0}));
}

TEST(TypedSpan, UnknownNamesAreRefusedWithASuggestion) {
  EXPECT_EQ(element_type("float64"), ElementType::float64);
  EXPECT_EQ(reduction_of("max"), Reduction::max);
  try {
    element_type("flaot32");
    FAIL();
  } catch (const std::exception& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 'float32'"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace echelon
