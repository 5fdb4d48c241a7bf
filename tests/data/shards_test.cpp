#include "data/formats/shards.h"

#include "data/formats/tar.h"
#include "tests/data/support.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::fixture;
using test::fixture_path;
using test::label;
using test::says;
using test::values;

TEST(Tar, FindsEveryMemberInEveryDialect) {
  for (const char* dialect : {"ustar", "gnu", "pax"}) {
    std::vector<std::string> names;
    std::vector<std::uint64_t> sizes;
    const auto tar = fixture(std::string("shard_") + dialect + ".tar");
    read_tar(*tar, [&](const TarMember& m) { names.push_back(m.name), sizes.push_back(m.size); });
    ASSERT_EQ(names.size(), 9u) << dialect;
    EXPECT_TRUE(names[4].ends_with("/0001.cls")) << names[4];
    EXPECT_EQ(sizes[4], 1u);
    EXPECT_GT(names[0].size(), dialect == std::string("ustar") ? 10u : 120u);
  }
}

TEST(Tar, OurHeadersAreReadByTarAndByUs) {
  const test::TempDir dir;
  const std::string content = "hello";
  test::write_bytes(dir.path("a.tar"), tar_header("x/y.txt", 5) + content + std::string(507 + 1024, '\0'));
  EXPECT_EQ(echelon::test::output_of("tar -xOf " + dir.path("a.tar") + " x/y.txt"), content);
  EXPECT_THROW(tar_header(std::string(101, 'x'), 1), BadInput);
}

TEST(Tar, SaysWhatIsWrongWhere) {
  auto bytes = test::bytes_of_file(fixture_path("shard_ustar.tar"));
  bytes[0] ^= std::byte{1};
  EXPECT_TRUE(says(complaint_of([&] { read_tar(*memory_source("a.tar", bytes), [](const TarMember&) {}); }),
                   "a.tar: at byte 0: expected a tar header with checksum"));
  EXPECT_TRUE(
      says(complaint_of([&] { read_tar(*fixture("rgb.png"), [](const TarMember&) {}); }), "rgb.png: at byte 0"));
}

TEST(Shards, SamplesAreGroupsOfMembers) {
  const auto disk = make_real_disk();
  for (const char* dialect : {"ustar", "gnu", "pax"}) {
    const auto d = open_shards(*disk, fixture_path(std::string("shard_") + dialect + ".tar"), "train", {});
    ASSERT_EQ(d->size(), 3u);
    EXPECT_EQ(d->fields()[0], (Field{"image", DType::f32, Shape{3, 2, 3}}));
    EXPECT_EQ(d->info().classes, 3);
    for (std::uint64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(label(*d, i), 2 - static_cast<int>(i));
      EXPECT_EQ(values<float>(*d, i, 0)[5], static_cast<float>(10 * i) * (1.0f / 255));
    }
  }
}

TEST(Shards, ArraysAndTexts) {
  const auto disk = make_real_disk();
  const auto arrays = open_shards(*disk, fixture_path("arrays.tar"), "train", {});
  EXPECT_EQ(arrays->fields()[0], (Field{"features", DType::f32, Shape{4}}));
  EXPECT_EQ(values<float>(*arrays, 1, 0), (std::vector<float>{1, 2, 3, 4}));
  ShardOptions four;
  four.length = 4;
  const auto texts = open_shards(*disk, fixture_path("texts.tar"), "train", four);
  EXPECT_EQ(values<std::int32_t>(*texts, 0, 0), (std::vector<std::int32_t>{'h', 'e', 'l', 'l'}));
  EXPECT_EQ(values<std::int32_t>(*texts, 1, 0), (std::vector<std::int32_t>{'h', 'i', 0, 0}));
  EXPECT_TRUE(
      says(complaint_of([&] { open_shards(*disk, fixture_path("texts.tar"), "train", {}); }), "say how long one is"));
}

TEST(Shards, DirectoriesAreReadInOrderAndBySplit) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  for (const char* name : {"train-1.tar", "train-0.tar", "test-0.tar"})
    std::filesystem::copy_file(
        fixture_path(std::string(name).starts_with("test") ? "shard_gnu.tar" : "shard_ustar.tar"), dir.path(name));
  EXPECT_EQ(open_shards(*disk, dir.path(), "train", {})->size(), 6u);
  EXPECT_EQ(open_shards(*disk, dir.path(), "test", {})->size(), 3u);
}

std::string member(const std::string& name, const std::string& content) {
  return tar_header(name, content.size()) + content + std::string((512 - content.size() % 512) % 512, '\0');
}

TEST(Shards, MixedOrIncompleteSamplesAreRefused) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const auto complaint = [&](const std::string& members) {
    test::write_bytes(dir.path("a.tar"), members + std::string(1024, '\0'));
    ShardOptions o;
    o.length = 4;
    return complaint_of([&] { open_shards(*disk, dir.path("a.tar"), "train", o); });
  };
  EXPECT_TRUE(says(complaint(member("1.txt", "a") + member("1.cls", "x")), "a class in '1.cls'"));
  EXPECT_TRUE(
      says(complaint(member("1.txt", "a") + member("2.txt", "a") + member("2.cls", "1")), "the same kinds of members"));
  EXPECT_TRUE(says(complaint(member("1.cls", "1")), "a .png, .jpg, .npy or .txt for '1'"));
  EXPECT_TRUE(says(complaint(member("readme", "1")), "no sample in it"));
  EXPECT_TRUE(says(complaint(member("1.txt", "a") + member("1.b.txt", "a")), "one input for '1', found a second"));
}

}  // namespace
}  // namespace echelon::data
