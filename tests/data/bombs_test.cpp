// Small files that want much memory: refused from what their headers declare and from what is plausible.
#include <zlib.h>

#include "data/class_counter.h"
#include "data/files/inflate.h"
#include "data/formats/csv.h"
#include "data/formats/idx.h"
#include "data/formats/npy.h"
#include "data/formats/npz.h"
#include "data/formats/shards.h"
#include "data/formats/tar.h"
#include "tests/data/support.h"
#include "world/os/host.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::says;
using test::TempDir;
using test::write_bytes;

// `head`, then zeros, gzipped (window 31) or as a raw deflate stream (window -15).
std::string packed(std::string_view head, std::uint64_t zeros, int window = 31) {
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string out, room(1 << 16, '\0');
  const std::string block(1 << 20, '\0');
  const auto feed = [&](std::string_view text, int flush) {
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    z.avail_in = static_cast<uInt>(text.size());
    do {
      z.next_out = reinterpret_cast<Bytef*>(room.data());
      z.avail_out = static_cast<uInt>(room.size());
      deflate(&z, flush);
      out.append(room, 0, room.size() - z.avail_out);
    } while (z.avail_out == 0);
  };
  feed(head, Z_NO_FLUSH);
  for (; zeros > 0; zeros -= std::min<std::uint64_t>(zeros, block.size()))
    feed(std::string_view(block).substr(0, std::min<std::uint64_t>(zeros, block.size())), Z_NO_FLUSH);
  feed({}, Z_FINISH);
  deflateEnd(&z);
  return out;
}

std::string big32(std::uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8), static_cast<char>(v)};
}

std::string idx_header(std::initializer_list<std::uint32_t> extents) {
  std::string out{'\0', '\0', '\x08', static_cast<char>(extents.size())};
  for (const auto e : extents) out += big32(e);
  return out;
}

constexpr std::uint64_t bomb = 200 << 20;

std::size_t growth(const std::function<void()>& run) {
  const std::size_t before = peak_resident_bytes();
  run();
  return peak_resident_bytes() - before;
}

TEST(Bombs, AnIdxFileUnpacksNoFurtherThanItsHeaderSays) {
  const TempDir dir;
  const auto disk = make_real_disk();
  write_bytes(dir.path("images.gz"), packed(idx_header({10, 28, 28}), bomb));
  std::string text;
  EXPECT_LT(growth([&] { text = complaint_of([&] { open_idx_file(*disk, dir.path("images.gz")); }); }), 32u << 20);
  EXPECT_TRUE(says(text, "images.gz: at byte"));
  EXPECT_TRUE(says(text, "expected at most 7856 unpacked bytes, as the header declares, found more"));
  write_bytes(dir.path("good.gz"), packed(idx_header({100, 28, 28}), 78400));
  EXPECT_EQ(open_idx_file(*disk, dir.path("good.gz")).count, 100u);
  write_bytes(dir.path("noise.gz"), packed("no header at all", bomb));
  EXPECT_TRUE(says(complaint_of([&] { open_idx_file(*disk, dir.path("noise.gz")); }), "the two zero bytes"));
}

TEST(Bombs, AnNpyFileUnpacksNoFurtherThanItsHeaderSays) {
  const TempDir dir;
  const auto disk = make_real_disk();
  write_bytes(dir.path("x.npy"), packed(npy_header("<f4", {10, 4}), bomb));
  EXPECT_LT(growth([&] {
              EXPECT_TRUE(says(complaint_of([&] { open_npy(*disk, dir.path("x.npy")); }), "as the header declares"));
            }),
            32u << 20);
}

TEST(Bombs, WhatDeclaresNothingUnpacksToWhatIsPlausible) {
  EXPECT_EQ(plausible_size(1000), 256u << 20);
  EXPECT_EQ(plausible_size(1ull << 30), 64ull << 30);
  const TempDir dir;
  const auto disk = make_real_disk();
  write_bytes(dir.path("t.csv"), packed("", 300 << 20));
  EXPECT_TRUE(says(complaint_of([&] { open_csv(*disk, dir.path("t.csv"), "train", {}); }),
                   fmt::format("at most {} unpacked bytes", 256 << 20)));
}

TEST(Bombs, AnNpzMemberOfAnotherSizeThanItsHeaderSaysIsNotUnpacked) {
  const std::string head = npy_header("<f4", {10, 4});
  const std::string deflated = packed(head, bomb, -15);
  const auto u16 = [](std::uint64_t v) { return std::string{static_cast<char>(v), static_cast<char>(v >> 8)}; };
  const auto u32 = [&](std::uint64_t v) { return u16(v) + u16(v >> 16); };
  const std::uint64_t whole = head.size() + bomb;
  const std::string sizes = u32(0) + u32(deflated.size()) + u32(whole);
  const std::string local = "PK\3\4" + u16(20) + u16(0) + u16(8) + u32(0) + sizes + u16(5) + u16(0) + "x.npy";
  const std::string entry = "PK\1\2" + u16(20) + u16(20) + u16(0) + u16(8) + u32(0) + sizes + u16(5) + u16(0) + u16(0) +
                            u16(0) + u16(0) + u32(0) + u32(0) + "x.npy";
  const std::string zip = local + deflated + entry + "PK\5\6" + u16(0) + u16(0) + u16(1) + u16(1) + u32(entry.size()) +
                          u32(local.size() + deflated.size()) + u16(0);
  const auto bytes = std::as_bytes(std::span(zip));
  const auto source = memory_source("x.npz", {bytes.begin(), bytes.end()});
  EXPECT_LT(growth([&] {
              EXPECT_TRUE(says(complaint_of([&] { read_npz(source); }),
                               fmt::format("of 'x.npy', as its header declares, found {}", whole)));
            }),
            32u << 20);
}

std::string classes_of(const std::vector<std::int64_t>& labels, ClassCounter::Of what = ClassCounter::Of::samples) {
  ClassCounter counter(what);
  for (std::size_t i = 0; i < labels.size(); ++i) counter.add(labels[i], i);
  std::int64_t classes = 0;
  const std::string text = complaint_of([&] { classes = counter.classes("y"); });
  return text.empty() ? std::to_string(classes) : text;
}

TEST(Classes, AreOneMoreThanTheLargestLabel) {
  EXPECT_EQ(classes_of({0, 1, 2}), "3");
  EXPECT_EQ(classes_of({7}), "8");
  EXPECT_EQ(classes_of({3, 12, 0}), "13");
  EXPECT_EQ(classes_of({}), "0");
  std::vector<std::int64_t> half;
  for (std::int64_t i = 0; i < 500; ++i) half.push_back(2 * i);  // every second class is empty
  EXPECT_EQ(classes_of(half), "999");
}

TEST(Classes, AJumpIsAskedBackWithItsRow) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 2000; ++i) labels.push_back(i % 10);
  labels[1203] = 77;
  EXPECT_EQ(classes_of(labels),
            "y: labels 0-9 and one 77, in row 1203 (counted from 0): set classes = 78 if that is meant");
  labels[1203] = 100'000'000;
  EXPECT_TRUE(says(classes_of(labels), "labels 0-9 and one 100000000, in row 1203"));
  labels[1999] = 2'000'000'000;
  EXPECT_TRUE(says(classes_of(labels), "some up to 2000000000, in row 1203"));
  EXPECT_TRUE(says(classes_of({90, 91, 92}), "labels from 90 to 92, of which 3 are there: set classes = 93"));
}

TEST(Classes, TokensMayLeaveMuchOfTheirVocabularyOut) {
  EXPECT_EQ(classes_of({17, 50256, 3}, ClassCounter::Of::tokens), "50257");
  EXPECT_TRUE(says(classes_of({17, 100'000'000}, ClassCounter::Of::tokens), "tokens"));
}

TEST(Classes, ALabelFileIsAskedBackUnlessTheRecipeSaysHowMany) {
  const auto y = [](std::string labels) {
    const auto bytes = std::as_bytes(std::span(labels));
    return dense_array(memory_source("y.idx", {bytes.begin(), bytes.end()}), Element::u8, false, {labels.size()}, 0);
  };
  const std::string labels("\0\1\2\3\4\5\6\7\10\11\115", 11);
  EXPECT_TRUE(says(complaint_of([&] { array_dataset(y(labels), y(labels), {}); }), "labels 0-9 and one 77, in row 10"));
  ArrayOptions meant;
  meant.classes = 78;
  EXPECT_EQ(array_dataset(y(labels), y(labels), meant)->info().classes, 78);
}

TEST(Classes, OfATarAreAskedBackToo) {
  const TempDir dir;
  const auto disk = make_real_disk();
  std::string tar;
  const auto add = [&](const std::string& name, std::string content) {
    tar += tar_header(name, content.size());
    content.resize((content.size() + 511) / 512 * 512, '\0');
    tar += content;
  };
  for (int i = 0; i < 20; ++i) {
    add(fmt::format("{:04}.txt", i), "text");
    add(fmt::format("{:04}.cls", i), i == 13 ? "100000000" : std::to_string(i % 4));
  }
  write_bytes(dir.path("a.tar"), tar + std::string(1024, '\0'));
  ShardOptions options;
  options.length = 4;
  const auto open = [&] { return open_shards(*disk, dir.path("a.tar"), "train", options); };
  EXPECT_TRUE(says(complaint_of([&] { open(); }), "labels 0-3 and one 100000000, in row 13"));
  options.classes = 4;
  EXPECT_TRUE(says(complaint_of([&] { open(); }), "expected a class from 0 to 3, found 100000000 (sample 13)"));
  options.classes = 100'000'001;
  EXPECT_EQ(open()->info().classes, 100'000'001);
}

SourcePtr bomb_csv(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return memory_source("t.csv", {bytes.begin(), bytes.end()});
}

TEST(Bombs, ATableHasABoundedNumberOfColumnsAndBytesInACell) {
  EXPECT_TRUE(says(complaint_of([] { read_csv(bomb_csv(std::string(8 << 20, ',') + "\n"), {}); }),
                   "expected at most 1048576 cells on line 1, found more"));
  EXPECT_TRUE(says(complaint_of([] { read_csv(bomb_csv("a,b\n1,\"" + std::string(4 << 20, 'x') + "\"\n"), {}); }),
                   "a cell of at most 1048576 bytes on line 2"));
  EXPECT_TRUE(says(complaint_of([] { read_csv(bomb_csv("a,b\n1," + std::string(4 << 20, 'x') + "\n"), {}); }),
                   "a cell of at most 1048576 bytes"));
}

TEST(Bombs, AMessageDoesNotListAThousandColumns) {
  std::string header = "c0";
  for (int i = 1; i < 5000; ++i) header += fmt::format(",c{}", i);
  CsvOptions options;
  options.label = "absent";
  const std::string text = complaint_of([&] { read_csv(bomb_csv(header + "\n"), options); });
  EXPECT_TRUE(says(text, "c0, c1, c2"));
  EXPECT_TRUE(says(text, "and 4980 more"));
  EXPECT_LT(text.size(), 500u);
}

}  // namespace
}  // namespace echelon::data
