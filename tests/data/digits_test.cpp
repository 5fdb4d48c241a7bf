// The digits that come with the repository.

#include "data/files/catalog.h"
#include "data/formats/idx.h"
#include "tests/data/support.h"
#include "tests/support/source_path.h"

namespace echelon::data {
namespace {

TEST(Digits, AreAllThereAndBalanced) {
  const auto disk = make_real_disk();
  for (const auto& [split, size] : {std::pair<std::string, std::uint64_t>{"train", 6000}, {"test", 1000}}) {
    const auto d = open_idx(*disk, source_path("share/digits"), split, {});
    const Summary s = summarise(*d);
    EXPECT_EQ(s.info.size, size);
    EXPECT_EQ(s.samples_read, size);
    EXPECT_EQ(s.class_counts, std::vector<std::uint64_t>(10, size / 10));
    EXPECT_EQ(s.info.fields[0].shape, (Shape{1, 28, 28}));
    ASSERT_EQ(s.channels.size(), 1u);
    EXPECT_NEAR(s.channels[0].mean, 0.1307, 0.01);  // MNIST's well-known mean and deviation
    EXPECT_NEAR(s.channels[0].deviation, 0.3081, 0.01);
    EXPECT_EQ(s.channels[0].least, 0);
    EXPECT_EQ(s.channels[0].most, 1);
  }
}

}  // namespace
}  // namespace echelon::data
