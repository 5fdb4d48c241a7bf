#include "track/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/json.h"
#include "base/random.h"
#include "tests/support/memory_file.h"
#include "tests/support/says.h"
#include "tests/support/source_path.h"
#include "tests/support/temp_dir.h"
#include "track/weights_hash.h"

namespace echelon {
namespace {

TensorView view(const std::string& name, const Tensor& t) { return {name, t.dtype(), t.shape(), t.bytes()}; }

Tensor random_tensor(Shape shape, std::uint32_t layer) {
  Tensor t(DType::f32, shape);
  const Stream stream({.seed = 3, .layer = layer});
  for (std::int64_t i = 0; i < t.elements(); ++i) t.as<float>()[i] = stream.normal(i);
  return t;
}

// All dtypes, a scalar, an empty one, odd byte counts, names that need escaping, one larger than the writer's pieces.
struct Sample {
  Tensor big = random_tensor({300, 1001}, 1), scalar = random_tensor({}, 2), bias = random_tensor({7}, 3);
  Tensor empty = Tensor(DType::f32, {3, 0, 2});
  Tensor ints = Tensor::of<std::int32_t>({2, 2}, {1, -2, 3, 1 << 30});
  Tensor bytes = Tensor::of<std::uint8_t>({3}, {1, 2, 255});
  std::vector<TensorView> views() const {
    return {view("ints", ints),     view("a.big.weight", big),          view("bytes", bytes),
            view("scalar", scalar), view("quote\" \\ µ \n name", bias), view("empty", empty)};
  }
};

std::string file_with(const std::string& header, const std::string& data) {
  std::string text(8, '\0');
  const std::uint64_t n = header.size();
  std::memcpy(text.data(), &n, 8);
  return text + header + data;
}

// The reader's complaint about a file of these bytes; "" if it accepts them.
std::string complaint(const std::string& bytes) {
  try {
    SafetensorsFile file(std::make_unique<test::MemoryFile>(bytes), "x.safetensors");
    for (const auto& t : file.tensors()) file.read(t.name);
    return "";
  } catch (const BadInput& e) {
    return e.what();
  }
}

TEST(Safetensors, ReadsBackWhatWasWritten) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const Sample sample;
  const FileDigest digest = write_safetensors(*disk, dir.path("m"), sample.views(), {{"format", "pt"}, {"k", "µ"}});
  EXPECT_EQ(digest, digest_of(*disk, dir.path("m")));

  SafetensorsFile file(*disk, dir.path("m"));
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}, {"k", "µ"}}));
  ASSERT_EQ(file.tensors().size(), sample.views().size());
  for (const auto& expected : sample.views()) {
    const Tensor found = file.read(expected.name);
    EXPECT_EQ(found.dtype(), expected.dtype);
    EXPECT_EQ(found.shape(), expected.shape);
    EXPECT_TRUE(std::ranges::equal(found.bytes(), expected.bytes)) << expected.name;
    EXPECT_EQ(file.find(expected.name)->offset % size_of(expected.dtype), 0u);
  }
  EXPECT_EQ(file.find("absent"), nullptr);
  EXPECT_THROW(file.read("absent"), BadInput);
}

TEST(Safetensors, AnIndependentReaderAgrees) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const Sample sample;
  write_safetensors(*disk, dir.path("m"), sample.views(), {{"who", "echelon"}});
  const Json seen = parse_json(
      test::output_of("/usr/bin/python3 " + source_path("tests/track/read_safetensors.py") + " " + dir.path("m")),
      "py");
  EXPECT_EQ(seen["metadata"]["who"], "echelon");
  EXPECT_EQ(seen["tensors"].size(), sample.views().size());
  for (const auto& expected : sample.views()) {
    const Json& t = seen["tensors"][expected.name];
    EXPECT_EQ(t["shape"], Json(std::vector<std::int64_t>(expected.shape.dims().begin(), expected.shape.dims().end())));
    EXPECT_EQ(t["sha256"], sha256_hex(expected.bytes)) << expected.name;
  }
  EXPECT_EQ(seen["tensors"]["ints"]["dtype"], "int32");
  EXPECT_EQ(seen["weights_sha256"], weights_hash(sample.views()));
}

TEST(Safetensors, NothingAtAllIsAFileToo) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  write_safetensors(*disk, dir.path("m"), {});
  EXPECT_TRUE(SafetensorsFile(*disk, dir.path("m")).tensors().empty());
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const Tensor weight = random_tensor({5, 3}, 1), bias = random_tensor({3}, 2);
  write_safetensors(*disk, dir.path("m"), std::vector{view("weight", weight), view("bias", bias)});
  const std::string whole = read_text(*disk, dir.path("m"));
  EXPECT_EQ(complaint(whole), "");
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_NE(complaint(whole.substr(0, n)), "") << n;
  EXPECT_TRUE(test::says(complaint(whole + "x"), "found 1 bytes more"));
}

TEST(Safetensors, MessagesNameFileOffsetExpectedAndFound) {
  EXPECT_TRUE(test::says(complaint("abc"),
                         "x.safetensors: offset 0: expected 8 bytes with the header's length, found a file of 3"));
  EXPECT_TRUE(test::says(complaint(std::string(8, '\xff') + "{}"),
                         "expected a header of 2 to 2 bytes, found a length of 184467440"));
  EXPECT_TRUE(test::says(complaint(file_with("[]", "")), "offset 8: expected '{', found byte 0x5b"));
  EXPECT_TRUE(test::says(complaint(file_with("{]", "")), "header (offset 8): byte 2: not valid JSON"));
}

TEST(Safetensors, EntriesAreChecked) {
  const auto entry = [](const std::string& e) { return complaint(file_with("{\"w\":" + e + "}", "12345678")); };
  EXPECT_EQ(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), "");
  EXPECT_TRUE(test::says(entry(R"({"dtype":"F12","shape":[4],"data_offsets":[0,8]})"),
                         "expected a dtype such as F32, BF16 or I64, found \"F12\""));
  EXPECT_TRUE(test::says(entry(R"({"dtype":"F16","shape":[4],"data_offsets":[0,8]})"), "is F16, not F32, I32 or U8"));
  EXPECT_TRUE(test::says(entry(R"({"dtype":"F16","shape":[3],"data_offsets":[0,8]})"), "F16 [3] is 6 bytes"));
  EXPECT_TRUE(test::says(entry(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), "F32 [3] is 12 bytes"));
  EXPECT_TRUE(test::says(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,12]})"), "within the 8 bytes"));
  EXPECT_TRUE(test::says(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), "found [8, 0]"));
  EXPECT_TRUE(test::says(entry(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"),
                         "expected whole numbers in shape, found -2"));
  EXPECT_TRUE(test::says(entry(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"), "expected whole numbers"));
  EXPECT_TRUE(
      test::says(entry(R"({"dtype":"F32","shape":[1,1,1,1,1,1,2],"data_offsets":[0,8]})"), "at most 6 numbers"));
  EXPECT_TRUE(
      test::says(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"), "expected data_offsets [begin, end]"));
  EXPECT_TRUE(test::says(entry(R"({"dtype":"F32","shape":[2]})"), "data_offsets is missing"));
  EXPECT_TRUE(test::says(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})"), "found the key \"x\""));
  EXPECT_TRUE(test::says(entry("7"), "expected an object, found number"));
  // 2^62 * 4 elements * 4 bytes is 8 bytes modulo 2^64 plus nothing: only checked arithmetic sees it.
  EXPECT_TRUE(test::says(entry(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]})"),
                         "too large for any file"));
  EXPECT_TRUE(test::says(entry(R"({"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,8]})"),
                         "expected whole numbers"));
}

TEST(Safetensors, RangesCoverTheDataExactlyOnce) {
  const auto two = [](const std::string& a, const std::string& b) {
    return complaint(file_with(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
                                   R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}",
                               "12345678"));
  };
  EXPECT_EQ(two("[0,4]", "[4,8]"), "");
  EXPECT_EQ(two("[4,8]", "[0,4]"), "");
  EXPECT_TRUE(test::says(two("[0,4]", "[0,4]"), "tensor \"b\": expected its bytes at offset"));
  EXPECT_TRUE(test::says(two("[0,4]", "[3,7]"), "tensor \"b\""));
  EXPECT_TRUE(test::says(two("[1,5]", "[4,8]"), "tensor \"a\""));
}

TEST(Safetensors, DuplicateNamesAndDeepNestingAreRefused) {
  const std::string e = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_TRUE(test::says(complaint(file_with("{\"w\":" + e + ",\"w\":" + e + "}", "")), "\"w\" occurs twice"));
  EXPECT_TRUE(test::says(complaint(file_with("{\"w\":" + std::string(100'000, '[') + "}", "")), "nested deeper"));
  EXPECT_TRUE(test::says(complaint(file_with(R"({"__metadata__":{"a":1}})", "")), "expected text for \"a\""));
}

TEST(Safetensors, ReadAllListsEveryMismatchBeforeItFillsAnything) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const Tensor a = random_tensor({2, 3}, 1), b = random_tensor({4}, 2), c = random_tensor({1}, 3);
  write_safetensors(*disk, dir.path("m"), std::vector{view("a", a), view("b", b), view("c", c)});
  SafetensorsFile file(*disk, dir.path("m"));
  Tensor x(DType::f32, {2, 3}), y(DType::f32, {5}), z(DType::f32, {1});
  const auto slot = [](const char* name, Tensor& t) { return TensorSlot{name, t.dtype(), t.shape(), t.bytes()}; };
  try {
    file.read_all(std::vector{slot("a", x), slot("b", y), slot("d", z)});
    FAIL();
  } catch (const BadInput& e) {
    const std::string text = e.what();
    EXPECT_TRUE(test::says(text, "'b': expected f32 [5], found f32 [4]"));
    EXPECT_TRUE(test::says(text, "'d' [1] is missing"));
    EXPECT_TRUE(test::says(text, "'c' [1] has no place here"));
  }
  EXPECT_EQ(x.as<float>()[0], 0.0f);
  Tensor w(DType::f32, {4});
  file.read_all(std::vector{slot("c", z), slot("a", x), slot("b", w)});
  EXPECT_TRUE(std::ranges::equal(x.bytes(), a.bytes()));
  EXPECT_TRUE(std::ranges::equal(w.bytes(), b.bytes()));
}

TEST(WeightsHash, KnowsNamesShapesAndBytesButNotTheOrder) {
  Tensor a = random_tensor({2, 3}, 1), b = random_tensor({6}, 2);
  const auto base = weights_hash(std::vector{view("a", a), view("b", b)});
  EXPECT_EQ(base, weights_hash(std::vector{view("b", b), view("a", a)}));
  EXPECT_NE(base, weights_hash(std::vector{view("a", a), view("c", b)}));
  EXPECT_NE(base, weights_hash(std::vector{view("a", a)}));
  EXPECT_NE(base, weights_hash(std::vector{view("a", b), view("b", a)}));
  EXPECT_NE(base, weights_hash(std::vector{TensorView{"a", DType::f32, {3, 2}, a.bytes()}, view("b", b)}));
  EXPECT_NE(base, weights_hash(std::vector{TensorView{"a", DType::i32, {2, 3}, a.bytes()}, view("b", b)}));
  const test::TempDir dir;
  const auto disk = make_real_disk();
  write_safetensors(*disk, dir.path("m"), std::vector{view("b", b), view("a", a)});
  SafetensorsFile file(*disk, dir.path("m"));
  EXPECT_EQ(base, weights_hash(file));
  a.bytes()[5] ^= std::byte{1};
  EXPECT_NE(base, weights_hash(std::vector{view("a", a), view("b", b)}));
}

}  // namespace
}  // namespace echelon
