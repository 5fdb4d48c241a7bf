#include "cli/answers/input_samples.h"

#include <cstring>

#include "data/formats/folder.h"
#include "data/scratch.h"

namespace echelon::cli {

namespace {

using data::DatasetPtr;

constexpr std::uint64_t most_picture_bytes = 256u << 20;

// Samples of which only the inputs are known; what else the data set of the training had is zeros.
class OnlyInputs : public data::Dataset {
 public:
  OnlyInputs(data::DatasetInfo like, DatasetPtr inputs, std::size_t count)
      : Dataset(sized(std::move(like), inputs->size())), inputs_(std::move(inputs)), count_(count) {}
  void get(std::uint64_t index, const data::SampleContext& context, data::SampleRef out) const override {
    for (std::size_t f = count_; f < fields().size(); ++f) std::memset(out[f], 0, fields()[f].bytes());
    inputs_->get(index, context, out.first(count_));
  }

 private:
  static data::DatasetInfo sized(data::DatasetInfo info, std::uint64_t size) {
    info.size = size;
    return info;
  }
  DatasetPtr inputs_;
  std::size_t count_;
};

// The first fields of other samples, whose own may have more (a label).
class FirstFields : public data::Dataset {
 public:
  FirstFields(DatasetPtr inner, std::size_t count) : Dataset(cut(inner->info(), count)), inner_(std::move(inner)) {}
  void get(std::uint64_t index, const data::SampleContext& context, data::SampleRef out) const override {
    data::Scratch rest;
    std::vector<std::byte*> all(out.begin(), out.end());
    std::size_t bytes = 0;
    for (std::size_t f = out.size(); f < inner_->fields().size(); ++f) bytes += aligned(inner_->fields()[f].bytes());
    rest.resize(bytes);
    std::byte* at = rest.data();
    for (std::size_t f = out.size(); f < inner_->fields().size(); ++f)
      all.push_back(at), at += aligned(inner_->fields()[f].bytes());
    inner_->get(index, context, all);
  }

 private:
  static data::DatasetInfo cut(data::DatasetInfo info, std::size_t count) {
    info.fields.resize(count);
    return info;
  }
  DatasetPtr inner_;
};

// Rows of numbers that lie in memory.
class NumberRows : public data::Dataset {
 public:
  NumberRows(data::Field field, std::vector<float> numbers)
      : Dataset(info_of(field, numbers.size())), numbers_(std::move(numbers)) {}
  void get(std::uint64_t index, const data::SampleContext&, data::SampleRef out) const override {
    std::memcpy(out[0], numbers_.data() + index * (fields()[0].bytes() / sizeof(float)), fields()[0].bytes());
  }

 private:
  static data::DatasetInfo info_of(const data::Field& field, std::size_t numbers) {
    data::DatasetInfo info;
    info.fields = {field};
    info.size = numbers / static_cast<std::size_t>(field.shape.elements());
    return info;
  }
  std::vector<float> numbers_;
};

class PictureSamples : public data::Dataset {
 public:
  PictureSamples(Disk& disk, data::Field field, std::vector<std::string> paths, data::Fit fit)
      : Dataset(info_of(field, paths.size())), disk_(disk), paths_(std::move(paths)), fit_(fit) {}
  void get(std::uint64_t index, const data::SampleContext&, data::SampleRef out) const override {
    const std::string& path = paths_[index];
    const auto file = read_file(disk_, path, most_picture_bytes);
    const Shape& shape = fields()[0].shape;
    const int channels = static_cast<int>(shape[0]);
    data::Scratch pixels;
    const data::ImageExtent extent = data::decode_image(file, path, channels, pixels);
    data::resize_image(pixels.bytes(), extent, channels, {shape[1], shape[2]}, fit_, reinterpret_cast<float*>(out[0]));
  }

 private:
  static data::DatasetInfo info_of(const data::Field& field, std::size_t size) {
    data::DatasetInfo info;
    info.fields = {field};
    info.size = size;
    return info;
  }
  Disk& disk_;
  std::vector<std::string> paths_;
  data::Fit fit_;
};

void collect_pictures(Disk& disk, const std::string& folder, std::vector<std::string>& paths, int depth = 0) {
  if (depth > 16) return;
  for (const std::string& name : disk.list(folder)) {
    if (name.starts_with('.')) continue;
    const std::string path = folder + (folder.ends_with('/') ? "" : "/") + name;
    if (disk.is_directory(path))
      collect_pictures(disk, path, paths, depth + 1);
    else if (data::is_picture(name))
      paths.push_back(path);
  }
}

}  // namespace

DatasetPtr with_zeros(data::DatasetInfo like, DatasetPtr inputs, std::size_t count) {
  return std::make_shared<OnlyInputs>(std::move(like), std::move(inputs), count);
}

DatasetPtr first_fields(DatasetPtr samples, std::size_t count) {
  return std::make_shared<FirstFields>(std::move(samples), count);
}

DatasetPtr rows_of_numbers(const data::Field& field, std::vector<float> numbers) {
  return std::make_shared<NumberRows>(field, std::move(numbers));
}

DatasetPtr picture_samples(Disk& disk, const data::Field& field, std::vector<std::string> paths, data::Fit fit) {
  return std::make_shared<PictureSamples>(disk, field, std::move(paths), fit);
}

std::vector<std::string> pictures_below(Disk& disk, const std::string& folder) {
  std::vector<std::string> paths;
  collect_pictures(disk, folder, paths);
  return paths;
}

}  // namespace echelon::cli
