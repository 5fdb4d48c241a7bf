#include <algorithm>

#include "data/images/image.h"
#include "data/scratch.h"
#include "recipe/init_choice.h"

namespace echelon {

namespace {

constexpr std::uint64_t looked_at = 64;  // pictures

// Whether pictures that are read in colour have none.
bool is_grey(const data::Dataset& pictures) {
  data::Sample sample(pictures.fields());
  const std::uint64_t count = std::min(looked_at, pictures.size());
  for (std::uint64_t i = 0; i < count; ++i) {
    pictures.get(i * pictures.size() / count, {}, sample.ref());
    const std::span<const float> pixels = sample.field<float>(0);
    const std::size_t channel = pixels.size() / 3;
    for (std::size_t c = 1; c < 3; ++c)
      if (!std::ranges::equal(pixels.first(channel), pixels.subspan(c * channel, channel))) return false;
  }
  return true;
}

// The usual one of several sizes: half of the pictures are lower, and half are narrower.
data::ImageExtent usual_extent(Disk& disk, const data::Dataset& pictures, const Shape& first) {
  const auto& files = pictures.info().files;
  if (!files) return {first[1], first[2]};
  constexpr std::uint64_t most_bytes = 256u << 20;
  std::vector<std::int64_t> heights, widths;
  const std::uint64_t count = std::min(looked_at, pictures.size());
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string& path = (*files)[pictures.origin(i * pictures.size() / count, {})];
    data::Scratch pixels;
    const data::ImageExtent extent = data::decode_image(read_file(disk, path, most_bytes), path, 1, pixels);
    heights.push_back(extent.height), widths.push_back(extent.width);
  }
  for (auto* side : {&heights, &widths}) std::ranges::sort(*side);
  return {heights[heights.size() / 2], widths[widths.size() / 2]};
}

}  // namespace

void say_size(Disk& disk, Options& data, const data::Dataset& pictures) {
  const data::DatasetInfo& info = pictures.info();
  constexpr std::int64_t most = 256, usual = 224;
  const std::string kind = std::get<std::string>(data.items.at("kind").value);
  if ((kind != "images" && kind != "tar") || info.fields[0].name != "image" || data.items.contains("size")) return;
  const Shape& s = info.fields[0].shape;
  const data::ImageExtent extent = usual_extent(disk, pictures, s);
  const bool large = std::max(extent.height, extent.width) > most;
  data.items["size"].value =
      large ? Option::List{{usual, {}}, {usual, {}}} : Option::List{{extent.height, {}}, {extent.width, {}}};
  if (large) data.items["fit"].value = std::string("cover");
  if (s[0] == 3 && !data.items.contains("channels") && is_grey(pictures))
    data.items["channels"].value = std::int64_t{1};
}

}  // namespace echelon
