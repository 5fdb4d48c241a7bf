// Pictures against Pillow's pixels (tests/data/fixtures/make.py).

#include "data/images/image.h"

#include <cmath>

#include "data/formats/folder.h"
#include "data/formats/npy.h"
#include "tests/data/support.h"

namespace echelon::data {
namespace {

using test::bytes_of_file;
using test::complaint_of;
using test::fixture;
using test::fixture_path;
using test::says;
using test::values;

std::vector<float> stored(const std::string& name) {
  const Array a = read_npy(fixture(name));
  std::vector<float> out(a.count * static_cast<std::uint64_t>(a.sample.elements()));
  a.read_f32(a.offset, static_cast<std::int64_t>(out.size()), out.data());
  return out;
}

struct Decoded {
  ImageExtent extent;
  std::vector<float> pixels;
};

Decoded decode(const std::string& name, int channels) {
  Scratch pixels;
  const auto file = bytes_of_file(fixture_path(name));
  Decoded d{decode_image(file, name, channels, pixels), {}};
  for (const std::byte b : pixels.bytes()) d.pixels.push_back(static_cast<float>(b));
  return d;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max<double>(most, std::abs(a[i] - b[i]));
  return most;
}

TEST(Image, PngPixelsAreExactInEveryFlavour) {
  for (const char* name :
       {"rgb.png", "grey.png", "palette.png", "rgba.png", "grey_alpha.png", "bilevel.png", "photo.png"}) {
    EXPECT_EQ(decode(name, 3).pixels, stored(std::string(name) + ".rgb.npy")) << name;
    EXPECT_EQ(decode(name, 1).pixels, stored(std::string(name) + ".grey.npy")) << name;
  }
  EXPECT_EQ(decode("rgb.png", 3).extent.height, 9);
  EXPECT_EQ(decode("rgb.png", 3).extent.width, 11);
}

TEST(Image, DamageIsFoundWithoutDecoding) {
  for (const char* name : {"rgb.png", "palette.png", "photo.jpg", "progressive.jpg"}) {
    auto file = bytes_of_file(fixture_path(name));
    check_image(file, name);
    auto cut = file;
    cut.resize(file.size() / 2);
    EXPECT_TRUE(says(complaint_of([&] { check_image(cut, name); }), "it ends in the middle")) << name;
  }
  auto flipped = bytes_of_file(fixture_path("rgb.png"));
  flipped[flipped.size() / 2] ^= std::byte{4};
  EXPECT_TRUE(
      says(complaint_of([&] { check_image(flipped, "a.png"); }), "a.png: a corrupt PNG picture: the check sum"));
  EXPECT_TRUE(says(complaint_of([&] { check_image({}, "b.png"); }), "b.png: neither"));
}

TEST(Image, JpegPixelsAreThoseOfItsLibrary) {
  for (const char* name : {"photo.jpg", "progressive.jpg", "grey.jpg"})
    EXPECT_LE(largest_difference(decode(name, 3).pixels, stored(std::string(name) + ".rgb.npy")), 2) << name;
}

TEST(Image, RefusesOtherFiles) {
  EXPECT_TRUE(says(complaint_of([] { decode("quoted.csv", 3); }), "quoted.csv: neither a PNG nor a JPEG picture"));
}

TEST(Image, InksAreReadAsTheColoursThatTheyMake) {
  for (const int channels : {1, 3}) {
    const std::vector<float> inks = decode("cmyk.jpg", channels).pixels, light = decode("photo.jpg", channels).pixels;
    ASSERT_EQ(inks.size(), light.size());
    double sum = 0;
    for (std::size_t i = 0; i < inks.size(); ++i) sum += std::abs(inks[i] - light[i]);
    EXPECT_LT(sum / static_cast<double>(inks.size()), 8) << "the same picture, packed twice with losses";
  }
}

// A header may claim any extent: it must be refused before memory is asked for.
TEST(Image, RefusesHugeExtentsBeforeAllocating) {
  auto file = bytes_of_file(fixture_path("rgb.png"));
  for (std::size_t i = 16; i < 24; ++i) file[i] = std::byte{0x3f};
  Scratch pixels;
  EXPECT_THROW(decode_image(file, "huge.png", 3, pixels), BadInput);
  auto jpeg = bytes_of_file(fixture_path("photo.jpg"));
  for (std::size_t i = 0; i + 9 < jpeg.size(); ++i)
    if (jpeg[i] == std::byte{0xFF} && jpeg[i + 1] == std::byte{0xC0})
      for (std::size_t j = 5; j < 9; ++j) jpeg[i + j] = std::byte{0xEF};
  EXPECT_TRUE(
      says(complaint_of([&] { decode_image(jpeg, "huge.jpg", 3, pixels); }), "huge.jpg: a picture of 61423 x 61423"));
}

TEST(Image, ResizingIsPillowsBilinear) {
  Scratch pixels;
  const auto file = bytes_of_file(fixture_path("photo.png"));
  const ImageExtent from = decode_image(file, "photo.png", 3, pixels);
  const auto resized = [&](ImageExtent to, Fit fit) {
    std::vector<float> planes(static_cast<std::size_t>(to.height * to.width * 3)), out(planes.size());
    resize_image(pixels.bytes(), from, 3, to, fit, planes.data());
    const std::size_t area = planes.size() / 3;
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t i = 0; i < area; ++i) out[i * 3 + c] = planes[c * area + i] * 255;
    return out;
  };
  for (const auto& [h, w] : {std::pair<std::int64_t, std::int64_t>{8, 8}, {7, 31}, {40, 60}, {1, 1}, {20, 5}})
    EXPECT_LE(largest_difference(resized({h, w}, Fit::stretch), stored(fmt::format("photo_{}x{}.npy", h, w))), 1.01)
        << h << " " << w;
  EXPECT_LE(largest_difference(resized({8, 8}, Fit::cover), stored("photo_cover_8x8.npy")), 1.01);
  EXPECT_LE(largest_difference(resized({20, 30}, Fit::stretch), stored("photo.png.rgb.npy")), 1e-4) << "its own size";
}

TEST(Image, WritingAndReadingAPngGivesTheSamePixels) {
  std::vector<std::uint8_t> grey(6 * 5), colour(6 * 5 * 3);
  for (std::size_t i = 0; i < colour.size(); ++i)
    colour[i] = static_cast<std::uint8_t>(i * 37), grey[i % 30] = static_cast<std::uint8_t>(i * 11);
  Scratch pixels;
  decode_image(encode_png(colour, {6, 5}, 3), "c", 3, pixels);
  EXPECT_EQ(std::memcmp(pixels.data(), colour.data(), colour.size()), 0);
  decode_image(encode_png(grey, {6, 5}, 1), "g", 1, pixels);
  EXPECT_EQ(std::memcmp(pixels.data(), grey.data(), grey.size()), 0);
}

class Folder : public testing::Test {
 protected:
  void put(const std::string& to, const std::string& from) {
    std::filesystem::create_directories(std::filesystem::path(dir.path(to)).parent_path());
    std::filesystem::copy_file(fixture_path(from), dir.path(to));
  }
  test::TempDir dir;
  std::unique_ptr<Disk> disk = make_real_disk();
};

TEST_F(Folder, ClassesAreDirectories) {
  put("train/dog/1.png", "rgb.png");
  put("train/cat/b.JPG", "photo.jpg");
  put("train/cat/a.png", "grey.png");
  put("train/cat/notes.txt", "quoted.csv");
  put("test/dog/x.png", "rgb.png");
  const auto d =
      open_image_folder(*disk, dir.path(), "train", {.extent = ImageExtent{9, 11}, .channels = 3, .fit = Fit::stretch});
  ASSERT_EQ(d->size(), 3u);
  EXPECT_EQ(d->info().class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(test::label(*d, 0), 0);
  EXPECT_EQ(test::label(*d, 2), 1);
  const auto expected = stored("rgb.png.rgb.npy");
  const auto image = values<float>(*d, 2, 0);
  for (std::size_t i = 0; i < 99; ++i) EXPECT_EQ(image[i], expected[i * 3] * (1.0f / 255));
  const auto rest = open_image_folder(*disk, dir.path(), "test", {});
  EXPECT_EQ(rest->size(), 1u);
  EXPECT_EQ(test::label(*rest, 0), 1) << "numbered as in train, though there is no cat";
  put("test/owl/x.png", "rgb.png");
  EXPECT_TRUE(says(complaint_of([&] { open_image_folder(*disk, dir.path(), "test", {}); }),
                   "test/owl: the split 'train' has no such class"));
  const auto own = open_image_folder(*disk, dir.path(), "train", {.extent = {}, .channels = 1, .fit = Fit::stretch});
  EXPECT_EQ(own->fields()[0].shape, (Shape{1, 9, 11})) << "the first picture's extent";
}

TEST_F(Folder, EverySplitHasTheSizeOfTheFirstPictureToTrainWith) {
  put("train/cat/a.png", "rgb.png");    // 9 x 11
  put("train/cat/b.jpg", "photo.jpg");  // larger
  put("test/cat/a.jpg", "photo.jpg");
  put("validation/cat/a.jpg", "photo.jpg");
  for (const char* split : {"train", "test", "validation"})
    EXPECT_EQ(open_image_folder(*disk, dir.path(), split, {})->fields()[0].shape, (Shape{3, 9, 11})) << split;
}

TEST_F(Folder, SaysWhatIsMissing) {
  EXPECT_TRUE(
      says(complaint_of([&] { open_image_folder(*disk, dir.path("none"), "train", {}); }), "no such directory"));
  EXPECT_TRUE(
      says(complaint_of([&] { open_image_folder(*disk, dir.path(), "train", {}); }), "one directory for each class"));
  put("cat/notes.txt", "quoted.csv");
  EXPECT_TRUE(says(complaint_of([&] { open_image_folder(*disk, dir.path(), "train", {}); }), "no PNG or JPEG picture"));
}

}  // namespace
}  // namespace echelon::data
