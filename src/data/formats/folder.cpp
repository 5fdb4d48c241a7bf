#include "data/formats/folder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/sha256.h"
#include "data/files/fingerprint.h"
#include "data/files/hash_cache.h"
#include "data/files/source.h"

namespace echelon::data {

namespace {

constexpr std::uint64_t largest_file = 256 << 20;

// Which pictures there are, and the class of each.
struct Pictures {
  std::vector<std::string> files;
  std::vector<std::int32_t> labels;
};

void read_picture(Disk& disk, const std::string& path, Scratch& into) {
  const auto file = disk.open(path);
  const std::uint64_t size = file->size();
  if (size > largest_file) bad_input("{}: {} MiB are too much for a picture", path, size >> 20);
  into.resize(size);
  if (file->read_at(0, into.bytes()) != size) bad_input("{}: the file became shorter while it was read", path);
}

// Of the content of all pictures. What is damaged is named, all of it, before anything is trained.
std::string hash_of_files(Disk& disk, const std::vector<std::string>& files) {
  return cached_hash(disk, usual_hash_cache(), files, [&] {
    Sha256 hash;
    Scratch file;
    std::vector<std::string> damaged;
    for (const std::string& path : files) {
      read_picture(disk, path, file);
      hash.update_u64(file.bytes().size());
      hash.update(file.bytes());
      try {
        check_image(file.bytes(), path);
      } catch (const BadInput& problem) {
        damaged.emplace_back(problem.what());
      }
    }
    constexpr std::size_t shown = 20;
    const std::size_t more = damaged.size() > shown ? damaged.size() - shown : 0;
    if (more > 0) damaged.resize(shown);
    if (!damaged.empty())
      bad_input("{}{}\nput whole pictures in their place, or take them out of the folder", fmt::join(damaged, "\n"),
                more > 0 ? fmt::format("\nand {} more pictures", more) : "");
    return hash.hex();
  });
}

// The directories in it, by name; hidden ones are not classes.
std::vector<std::string> classes_in(Disk& disk, const std::string& root) {
  auto names = disk.list(root);
  std::erase_if(names, [&](const std::string& n) { return n.starts_with('.') || !disk.is_directory(root + "/" + n); });
  return names;
}

// The first picture of the first class that has one.
std::string first_picture(Disk& disk, const std::string& root, const std::vector<std::string>& classes) {
  for (const auto& name : classes)
    for (const auto& file : disk.list(root + "/" + name))
      if (is_picture(file)) return root + "/" + name + "/" + file;
  bad_input("{}: no picture in it to take the size from: set size", root);
}

class ImageFolder : public Dataset {
 public:
  ImageFolder(DatasetInfo info, Disk& disk, std::vector<std::int32_t> labels, const ImageOptions& options)
      : Dataset(std::move(info)), disk_(disk), labels_(std::move(labels)), options_(options) {}

  void get(std::uint64_t index, const SampleContext&, SampleRef out) const override {
    const std::string& path = (*info().files)[index];
    Scratch file, pixels;
    read_picture(disk_, path, file);
    const ImageExtent from = decode_image(file.bytes(), path, options_.channels, pixels);
    resize_image(pixels.bytes(), from, options_.channels, *options_.extent, options_.fit,
                 reinterpret_cast<float*>(out[0]));
    *reinterpret_cast<std::int32_t*>(out[1]) = labels_[index];
  }
  std::int32_t label(std::uint64_t index) const override { return labels_[index]; }

 private:
  Disk& disk_;
  std::vector<std::int32_t> labels_;
  ImageOptions options_;
};

}  // namespace

bool is_picture(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.ends_with(".png") || lower.ends_with(".jpg") || lower.ends_with(".jpeg");
}

bool has_split(Disk& disk, const std::string& path, const std::string& split) {
  return disk.is_directory(path + "/" + split);
}

std::shared_ptr<const Dataset> open_image_folder(Disk& disk, const std::string& path, const std::string& split,
                                                 const ImageOptions& options) {
  const std::string root = has_split(disk, path, split) ? path + "/" + split : path;
  if (!disk.is_directory(root)) bad_input("{}: there is no such directory", root);
  DatasetInfo info;
  info.class_names = classes_in(disk, has_split(disk, path, "train") ? path + "/train" : root);
  for (const auto& name : classes_in(disk, root))
    if (!std::ranges::binary_search(info.class_names, name))
      bad_input("{}/{}: the split 'train' has no such class", root, name);
  Pictures pictures;
  Fingerprint print;
  for (std::size_t c = 0; c < info.class_names.size(); ++c) {
    const std::string directory = root + "/" + info.class_names[c];
    print.add(info.class_names[c]);
    if (!disk.is_directory(directory)) continue;  // a class that this split has no sample of
    const auto files = disk.list(directory);
    if (!files.empty() && std::ranges::none_of(files, is_picture))
      bad_input("{}: no PNG or JPEG picture in it, but it is named like a class", directory);
    for (const auto& file : files) {
      if (!is_picture(file)) continue;
      pictures.files.push_back(directory + "/" + file);
      pictures.labels.push_back(static_cast<std::int32_t>(c));
      print.add(file);
    }
  }
  if (pictures.files.empty())
    bad_input("{}: no class in it: expected one directory for each class, with PNG or JPEG pictures", root);
  const std::string content = hash_of_files(disk, pictures.files);
  ImageOptions resolved = options;
  if (!resolved.extent) {
    const std::string first = has_split(disk, path, "train") ? first_picture(disk, path + "/train", info.class_names)
                                                             : pictures.files.front();
    Scratch file, pixels;
    read_picture(disk, first, file);
    resolved.extent = decode_image(file.bytes(), first, options.channels, pixels);
  }
  info.size = pictures.files.size();
  info.files = std::make_shared<const std::vector<std::string>>(std::move(pictures.files));
  info.classes = static_cast<std::int64_t>(info.class_names.size());
  info.fields = {{"image", DType::f32, Shape{options.channels, resolved.extent->height, resolved.extent->width}},
                 {"label", DType::i32, Shape{}}};
  info.fingerprint = print.add(to_string(info.fields[0])).add(content).hex();
  return std::make_shared<ImageFolder>(std::move(info), disk, std::move(pictures.labels), resolved);
}

}  // namespace echelon::data
