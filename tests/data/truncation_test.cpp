// A file cut off anywhere is refused by name, or still whole: never a crash, never another error, never other numbers.

#include <functional>

#include "data/files/inflate.h"
#include "data/formats/cifar.h"
#include "data/formats/csv.h"
#include "data/formats/idx.h"
#include "data/formats/npy.h"
#include "data/formats/npz.h"
#include "data/formats/shards.h"
#include "data/formats/tar.h"
#include "data/images/image.h"
#include "tests/data/support.h"

namespace echelon::data {
namespace {

using Read = std::function<void(SourcePtr)>;
struct Format {
  const char* file;
  Read read;
  std::size_t spare = 0;  // bytes at the end that hold nothing of the content: an end mark
};

void picture(SourcePtr s) {
  Scratch pixels;
  decode_image({s->at(0, s->size()), s->size()}, s->name(), 3, pixels);
}
void archive(SourcePtr s) {
  read_tar(*s, [](const TarMember&) {});
}

const std::vector<Format> formats = {
    {"numbers_i16.idx", [](SourcePtr s) { read_idx(s); }},
    {"train-labels-idx1-ubyte", [](SourcePtr s) { read_idx(s); }},
    {"train-images-idx3-ubyte.gz", [](SourcePtr s) { read_idx(memory_source(s->name(), gunzip(*s, 1 << 20))); }},
    {"numbers_le_f4.npy", [](SourcePtr s) { read_npy(s); }},
    {"version2.npy", [](SourcePtr s) { read_npy(s); }},
    {"stored.npz", [](SourcePtr s) { read_npz(s); }},
    {"deflated.npz", [](SourcePtr s) { read_npz(s); }},
    {"shard_ustar.tar", archive, 10240 - 9 * 1024 - 512},
    {"shard_gnu.tar", archive, 20480 - 3 * 6 * 1024 - 512},
    {"rgb.png", picture, 12},
    {"palette.png", picture, 12},
    {"photo.jpg", picture},
    {"progressive.jpg", picture},
};

TEST(Truncation, IsRefusedAtEveryOffset) {
  for (const auto& f : formats) {
    const auto whole = test::bytes_of_file(test::fixture_path(f.file));
    ASSERT_NO_THROW(f.read(memory_source(f.file, whole))) << f.file;
    for (std::size_t cut = 0; cut < whole.size() - f.spare; ++cut) {
      const auto part = memory_source(f.file, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut)});
      const std::string text = test::complaint_of([&] { f.read(part); });
      ASSERT_TRUE(test::says(text, f.file)) << f.file << " cut at " << cut;
    }
  }
}

// CIFAR has no header: what is cut to whole records is whole.
TEST(Truncation, OfCifarIsRefusedBetweenRecords) {
  const auto whole = test::bytes_of_file(test::fixture_path("cifar10.bin"));
  for (std::size_t cut = 0; cut < whole.size(); cut += cut % 3073 == 3072 ? 1 : 64) {
    if (cut == 3073) continue;
    ASSERT_THROW(read_cifar(memory_source("c", {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut)}), {}),
                 BadInput)
        << cut;
  }
}

// Text formats may still make sense when cut: then they must read, or say what is wrong.
TEST(Truncation, OfCsvReadsOrComplains) {
  const auto whole = test::bytes_of_file(test::fixture_path("quoted.csv"));
  CsvOptions o;
  o.ignore = {"2"};
  for (std::size_t cut = 0; cut < whole.size(); ++cut)
    test::complaint_of([&] {
      read_csv(memory_source("c", {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(cut)}), o);
    });
}

// One flipped bit is refused, or changes numbers only: never a crash or an error of another kind.
TEST(Corruption, OfAnyBitReadsOrComplains) {
  for (const auto& f : formats) {
    auto bytes = test::bytes_of_file(test::fixture_path(f.file));
    const std::size_t step = bytes.size() > 3000 ? 7 : 1;
    for (std::size_t i = 0; i < bytes.size(); i += step)
      for (const int bit : {0, 3, 7}) {
        bytes[i] ^= std::byte(1 << bit);
        test::complaint_of([&] { f.read(memory_source(f.file, bytes)); });
        bytes[i] ^= std::byte(1 << bit);
      }
  }
}

TEST(Corruption, GzippedBombsAreStopped) {
  const auto packed = test::fixture("train-images-idx3-ubyte.gz");
  EXPECT_TRUE(test::says(test::complaint_of([&] { gunzip(*packed, 10); }), "at most 10 unpacked bytes"));
}

}  // namespace
}  // namespace echelon::data
