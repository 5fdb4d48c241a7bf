// IDX, NPY, NPZ and CIFAR against files that independent writers made (tests/data/fixtures/make.py).

#include "data/formats/cifar.h"
#include "data/formats/idx.h"
#include "data/formats/npy.h"
#include "data/formats/npz.h"
#include "data/formats/zip.h"
#include "tests/data/support.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::fixture;
using test::fixture_path;
using test::label;
using test::says;
using test::values;

std::vector<float> all_numbers(const Array& a) {
  std::vector<float> out(static_cast<std::size_t>(a.count * static_cast<std::uint64_t>(a.sample.elements())));
  for (std::uint64_t i = 0; i < a.count; ++i)
    a.read_f32(a.place(i), a.sample.elements(), out.data() + i * static_cast<std::uint64_t>(a.sample.elements()));
  return out;
}

TEST(Idx, ReadsImagesAndLabelsPackedOrNot) {
  const auto disk = make_real_disk();
  const auto d = open_idx(*disk, fixture_path(""), "train", {});
  ASSERT_EQ(d->size(), 5u);
  EXPECT_EQ(d->fields()[0], (Field{"image", DType::f32, Shape{1, 4, 3}}));
  EXPECT_EQ(d->fields()[1], (Field{"label", DType::i32, Shape{}}));
  EXPECT_EQ(d->info().classes, 4);
  const auto image = values<float>(*d, 2, 0);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(image[i], static_cast<float>(24 + i) * (1.0f / 255));
  EXPECT_EQ(label(*d, 0), 3);
  EXPECT_EQ(label(*d, 2), 2);
}

TEST(Idx, ReadsEveryElementType) {
  for (const char* type : {"i8", "i16", "i32", "f32", "f64"}) {
    const Array a = read_idx(fixture(std::string("numbers_") + type + ".idx"));
    ASSERT_EQ(a.count, 4u) << type;
    const auto numbers = all_numbers(a);
    for (int i = 0; i < 12; ++i)
      EXPECT_EQ(numbers[static_cast<std::size_t>(i)], static_cast<float>(i - 6) * 10) << type;
  }
}

TEST(Idx, ClassNamesComeFromAFileBesideIt) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  for (const char* name : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte"})
    std::filesystem::copy_file(fixture_path(name), dir.path(name));
  test::write_bytes(dir.path("classes.txt"), "one\ntwo\r\n\nthree\nfour");
  const auto d = open_idx(*disk, dir.path(), "train", {});
  EXPECT_EQ(d->info().class_names, (std::vector<std::string>{"one", "two", "three", "four"}));
  test::write_bytes(dir.path("classes.txt"), "one\n");
  EXPECT_TRUE(says(complaint_of([&] { open_idx(*disk, dir.path(), "train", {}); }), "expected a class from 0 to 0"));
}

SourcePtr raw(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return memory_source("x.idx", {bytes.begin(), bytes.end()});
}

TEST(Idx, SaysWhatIsWrongWhere) {
  using namespace std::string_view_literals;
  EXPECT_TRUE(
      says(complaint_of([] { read_idx(raw("\1\0\x08\1"sv)); }), "x.idx: at byte 0: expected the two zero bytes"));
  EXPECT_TRUE(says(complaint_of([] { read_idx(raw("\0\0\x07\1"sv)); }), "at byte 2: expected an IDX type"));
  EXPECT_TRUE(
      says(complaint_of([] { read_idx(raw("\0\0\x08\x07"sv)); }), "at byte 3: expected 1 to 6 dimensions, found 7"));
  EXPECT_TRUE(says(complaint_of([] { read_idx(raw("\0\0\x08\1\0\0\0\5abc"sv)); }),
                   "at byte 8: expected 5 bytes of numbers, as the header declares, found 3 (truncated?)"));
  EXPECT_TRUE(says(complaint_of([] { read_idx(raw("\0\0\x08\1\0\0\0\1abc"sv)); }),
                   "expected 1 bytes of numbers, as the header declares, found 3"));
  // Extents whose product overflows must not become a small number.
  EXPECT_THROW(read_idx(raw("\0\0\x0E\4\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"sv)), BadInput);
  EXPECT_THROW(read_idx(raw("\0\0\x08\2\xff\xff\xff\xff\0\0\0\0"sv)), BadInput);
}

TEST(Idx, MissingFilesNameThePathAndACure) {
  const auto disk = make_real_disk();
  const auto text = complaint_of([&] { open_idx(*disk, "/nowhere", "train", {}); });
  EXPECT_TRUE(says(text, "/nowhere/train-images-idx3-ubyte"));
  EXPECT_TRUE(says(text, "echelon data list"));
}

TEST(Arrays, LabelsOutOfRangeAndCountsThatDifferAreRefused) {
  using namespace std::string_view_literals;
  const auto x = [] { return read_idx(raw("\0\0\x08\1\0\0\0\3abc"sv)); };
  EXPECT_TRUE(says(complaint_of([&] { array_dataset(x(), read_idx(raw("\0\0\x08\1\0\0\0\2ab"sv)), {}); }),
                   "has 3 samples, but x.idx has 2 labels"));
  ArrayOptions ten;
  ten.classes = 10;
  EXPECT_TRUE(says(complaint_of([&] { array_dataset(x(), read_idx(raw("\0\0\x08\1\0\0\0\3\1\x0a\1"sv)), ten); }),
                   "at byte 9: expected a class from 0 to 9, found 10 (sample 1)"));
  EXPECT_TRUE(says(complaint_of([&] { array_dataset(x(), read_idx(raw("\0\0\x09\1\0\0\0\3\1\xff\1"sv)), {}); }),
                   "found -1 (sample 1)"));
}

TEST(Npy, ReadsEveryTypeAndByteOrder) {
  for (const char* descr : {"u1", "i1", "le_u2", "be_u2", "le_i2", "le_u4", "le_i4", "be_i4", "le_u8", "le_i8", "le_f4",
                            "be_f4", "le_f8", "be_f8"}) {
    const Array a = read_npy(fixture(std::string("numbers_") + descr + ".npy"));
    ASSERT_EQ(a.count, 4u) << descr;
    EXPECT_EQ(a.sample, Shape{3});
    const auto numbers = all_numbers(a);
    for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(numbers[i], static_cast<float>(i)) << descr;
  }
  EXPECT_EQ(all_numbers(read_npy(fixture("version2.npy")))[7], 7);
  EXPECT_EQ(all_numbers(read_npy(fixture("booleans.npy"))), (std::vector<float>{1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0}));
}

TEST(Npy, RefusesWhatItCannotRead) {
  EXPECT_TRUE(says(complaint_of([] { read_npy(fixture("objects.npy")); }), "found type '|O'"));
  EXPECT_TRUE(says(complaint_of([] { read_npy(fixture("half.npy")); }), ".astype('float32')"));
  EXPECT_TRUE(says(complaint_of([] { read_npy(fixture("fortran.npy")); }), "numpy.ascontiguousarray"));
  EXPECT_TRUE(says(complaint_of([] { read_npy(fixture("rgb.png")); }), "the magic"));
}

TEST(Npy, OurHeaderIsNumPys) {
  const auto stored = test::bytes_of_file(fixture_path("numbers_le_f4.npy"));
  const std::string header = npy_header("<f4", {4, 3});
  ASSERT_LE(header.size(), stored.size());
  EXPECT_EQ(std::memcmp(header.data(), stored.data(), header.size()), 0);
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_TRUE(says(npy_header("<i4", {4}), "(4,)"));
}

TEST(Npz, ReadsStoredAndDeflated) {
  for (const char* file : {"stored.npz", "deflated.npz"}) {
    EXPECT_EQ(npz_names(*fixture(file)), (std::vector<std::string>{"x_train", "y_train", "x_test", "y_test"}));
    auto arrays = read_npz(fixture(file), {"x_train", "y_train"});
    EXPECT_EQ(arrays.size(), 2u);
    ArrayOptions options;
    options.channels_last = true;
    const auto d = array_dataset(arrays.at("x_train"), arrays.at("y_train"), options);
    EXPECT_EQ(d->fields()[0], (Field{"image", DType::f32, Shape{3, 2, 3}}));
    EXPECT_EQ(d->info().classes, 3);
    const auto image = values<float>(*d, 1, 0);  // in the file: 18, 19, 20 | 21, 22, 23 | ... by pixel
    EXPECT_EQ(image[0], 18.0f * (1.0f / 255));
    EXPECT_EQ(image[1], 21.0f * (1.0f / 255));
    EXPECT_EQ(image[6], 19.0f * (1.0f / 255));
    EXPECT_EQ(label(*d, 2), 2);
    const auto test = array_dataset(read_npz(fixture(file), {"x_test"}).at("x_test"),
                                    read_npz(fixture(file), {"y_test"}).at("y_test"), {});
    EXPECT_EQ(test->fields()[1].shape, Shape{}) << "[N, 1] labels are labels";
    EXPECT_TRUE(says(complaint_of([&] { read_npz(fixture(file), {"z"}); }), "it has: x_train, y_train"));
  }
}

TEST(Npz, ChecksumsAreChecked) {
  for (const char* file : {"stored.npz", "deflated.npz"}) {
    const auto directory = read_zip_directory(*fixture(file));
    auto bytes = test::bytes_of_file(fixture_path(file));
    bytes[directory[0].header + 30 + directory[0].name.size() + 20 + directory[0].packed - 8] ^= std::byte{1};
    EXPECT_THROW(read_npz(memory_source(file, bytes)), BadInput) << file;
  }
}

TEST(Cifar, ReadsBothKinds) {
  const auto ten = read_cifar(fixture("cifar10.bin"), {});
  EXPECT_EQ(ten->size(), 2u);
  EXPECT_EQ(ten->fields()[0], (Field{"image", DType::f32, Shape{3, 32, 32}}));
  EXPECT_EQ(ten->info().classes, 10);
  EXPECT_EQ(label(*ten, 0), 7);
  EXPECT_EQ(label(*ten, 1), 2);
  const auto image = values<float>(*ten, 1, 0);
  for (std::size_t i = 0; i < 3072; ++i) ASSERT_EQ(image[i], static_cast<float>((i + 2) % 256) * (1.0f / 255));
  const auto fine = read_cifar(fixture("cifar100.bin"), {.hundred = true, .coarse = false});
  EXPECT_EQ(label(*fine, 0), 70);
  EXPECT_EQ(fine->info().classes, 100);
  const auto coarse = read_cifar(fixture("cifar100.bin"), {.hundred = true, .coarse = true});
  EXPECT_EQ(label(*coarse, 0), 4);
  EXPECT_EQ(values<float>(*coarse, 1, 0)[0], 2.0f * (1.0f / 255));
  EXPECT_TRUE(says(complaint_of([] { read_cifar(fixture("cifar100.bin"), {}); }), "records of 3073 bytes"));
}

}  // namespace
}  // namespace echelon::data
