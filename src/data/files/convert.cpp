#include "data/files/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "data/formats/npy.h"
#include "data/formats/tar.h"
#include "data/images/image.h"

namespace echelon::data {

namespace {

// A file that is written in large pieces and synced at its end.
class Writer {
 public:
  Writer(Disk& disk, const std::string& path) : file_(disk.create(path)) {}
  void write(std::span<const std::byte> bytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    written_ += bytes.size();
    if (buffer_.size() > 1 << 20) flush();
  }
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  std::uint64_t written() const { return written_; }
  void finish() {
    flush();
    file_->sync();
  }

 private:
  void flush() {
    file_->append(buffer_);
    buffer_.clear();
  }
  std::unique_ptr<File> file_;
  std::vector<std::byte> buffer_;
  std::uint64_t written_ = 0;
};

struct Conversion {
  Disk& disk;
  const Dataset& dataset;
  std::string directory, split;
  std::function<void(std::uint64_t)> done;  // how many samples are written

  // Calls `use(sample, index)` for every sample.
  template <typename F>
  void each(F use) const {
    Sample sample(dataset.fields());
    for (std::uint64_t i = 0; i < dataset.size(); ++i) {
      dataset.get(i, {}, sample.ref());
      use(sample, i);
      if (i % 256 == 255) done(i + 1);
    }
  }
  const Field& field(std::size_t i) const { return dataset.fields()[i]; }
  bool labelled() const { return dataset.fields().size() > 1; }
};

void need(bool holds, const Conversion& job, const char* format, const char* what) {
  if (!holds) bad_input("'{}' holds {}, but a sample here begins with {}", format, what, to_string(job.field(0)));
}

// Numbers from 0 to 1 as bytes; the inverse of reading bytes as numbers.
std::vector<std::uint8_t> bytes_of(std::span<const float> pixels, std::uint64_t index) {
  std::vector<std::uint8_t> bytes;
  for (const float p : pixels) {
    if (!(p >= -0.001f && p <= 1.001f))
      bad_input("sample {} has the value {}, but pixels lie between 0 and 1: convert without normalising", index, p);
    bytes.push_back(static_cast<std::uint8_t>(std::lround(std::clamp(p, 0.0f, 1.0f) * 255)));
  }
  return bytes;
}

// [channels, height, width] to [height, width, channels], which is what picture files hold.
std::vector<std::uint8_t> interleaved(const std::vector<std::uint8_t>& planes, std::size_t channels) {
  std::vector<std::uint8_t> out(planes.size());
  const std::size_t area = planes.size() / channels;
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < area; ++i) out[i * channels + c] = planes[c * area + i];
  return out;
}

std::string big_endian(std::uint64_t value) {
  std::string s(4, '\0');
  for (std::size_t i = 0; i < 4; ++i) s[3 - i] = static_cast<char>(value >> (8 * i));
  return s;
}

void to_idx(const Conversion& job) {
  const Shape& s = job.field(0).shape;
  need(job.field(0).name == "image" && s[0] == 1, job, "idx", "grey images");
  need(job.labelled() && job.field(1).name == "label" && job.dataset.info().classes <= 256, job, "idx",
       "images with up to 256 classes");
  const std::string stem = job.directory + "/" + (job.split == "test" ? "t10k" : job.split);
  Writer images(job.disk, stem + "-images-idx3-ubyte"), labels(job.disk, stem + "-labels-idx1-ubyte");
  images.write(std::string("\0\0\x08\x03", 4) + big_endian(job.dataset.size()) +
               big_endian(static_cast<std::uint64_t>(s[1])) + big_endian(static_cast<std::uint64_t>(s[2])));
  labels.write(std::string("\0\0\x08\x01", 4) + big_endian(job.dataset.size()));
  job.each([&](Sample& sample, std::uint64_t i) {
    const auto pixels = bytes_of(sample.field<float>(0), i);
    images.write(std::as_bytes(std::span(pixels)));
    const auto label = static_cast<std::byte>(sample.field<std::int32_t>(1)[0]);
    labels.write(std::span(&label, 1));
  });
  images.finish(), labels.finish();
}

void to_npy(const Conversion& job) {
  static_assert(std::endian::native == std::endian::little);
  std::vector<Writer> files;
  for (std::size_t f = 0; f < std::min<std::size_t>(2, job.dataset.fields().size()); ++f) {
    const Field& field = job.field(f);
    files.emplace_back(job.disk, fmt::format("{}/{}_{}.npy", job.directory, job.split, f == 0 ? "x" : "y"));
    std::vector<std::uint64_t> shape{job.dataset.size()};
    for (const auto d : field.shape.dims()) shape.push_back(static_cast<std::uint64_t>(d));
    files.back().write(npy_header(field.dtype == DType::f32   ? "<f4"
                                  : field.dtype == DType::i32 ? "<i4"
                                                              : "|u1",
                                  shape));
  }
  job.each([&](Sample& sample, std::uint64_t) {
    for (std::size_t f = 0; f < files.size(); ++f)
      files[f].write(std::span<const std::byte>(sample.ref()[f], job.field(f).bytes()));
  });
  for (auto& file : files) file.finish();
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' ? 2 : 1, c);
  return out + '"';
}

void to_csv(const Conversion& job) {
  need(job.field(0).dtype == DType::f32, job, "csv", "numbers");
  const bool classes = job.labelled() && job.field(1).name == "label",
             target = job.labelled() && job.field(1).name == "target" && job.field(1).shape.elements() == 1;
  Writer file(job.disk, job.directory + "/" + job.split + ".csv");
  const auto n = job.field(0).shape.elements();
  for (std::int64_t i = 0; i < n; ++i) file.write(fmt::format("x{}{}", i, i + 1 < n || classes || target ? "," : "\n"));
  if (classes || target) file.write(classes ? "label\n" : "target\n");
  const auto& names = job.dataset.info().class_names;
  job.each([&](Sample& sample, std::uint64_t) {
    file.write(
        fmt::format("{}", fmt::join(sample.field<float>(0), ",")));  // the shortest text that gives the same float
    if (classes) {
      const auto label = sample.field<std::int32_t>(1)[0];
      file.write(",");
      file.write(names.empty() ? fmt::format("{}", label) : quoted(names[static_cast<std::size_t>(label)]));
    }
    if (target) file.write(fmt::format(",{}", fmt::join(sample.field<float>(1), ",")));
    file.write("\n");
  });
  file.finish();
}

std::vector<std::byte> png_of(const Conversion& job, Sample& sample, std::uint64_t index) {
  const Shape& s = job.field(0).shape;
  return encode_png(interleaved(bytes_of(sample.field<float>(0), index), static_cast<std::size_t>(s[0])), {s[1], s[2]},
                    static_cast<int>(s[0]));
}

void need_pictures(const Conversion& job, const char* format) {
  const Shape& s = job.field(0).shape;
  need(job.field(0).name == "image" && (s[0] == 1 || s[0] == 3), job, format, "grey or coloured images");
  need(job.labelled() && job.field(1).name == "label", job, format, "images with a class");
}

void to_tar(const Conversion& job) {
  need_pictures(job, "tar");
  constexpr std::uint64_t largest = 256 << 20;
  std::unique_ptr<Writer> tar;
  int shards = 0;
  const auto put = [&](const std::string& name, std::span<const std::byte> bytes) {
    tar->write(tar_header(name, bytes.size()));
    tar->write(bytes);
    tar->write(std::string((512 - bytes.size() % 512) % 512, '\0'));
  };
  const auto finish = [&] {
    if (!tar) return;
    tar->write(std::string(1024, '\0'));
    tar->finish();
    tar.reset();
  };
  job.each([&](Sample& sample, std::uint64_t i) {
    if (tar && tar->written() > largest) finish();
    if (!tar)
      tar = std::make_unique<Writer>(job.disk, fmt::format("{}/{}-{:06}.tar", job.directory, job.split, shards++));
    const std::string label = fmt::format("{}", sample.field<std::int32_t>(1)[0]);
    put(fmt::format("{:08}.cls", i), std::as_bytes(std::span(label)));
    put(fmt::format("{:08}.png", i), png_of(job, sample, i));
  });
  finish();
}

void to_images(const Conversion& job) {
  need_pictures(job, "images");
  const auto& info = job.dataset.info();
  std::vector<std::string> names = info.class_names;
  const std::size_t digits = fmt::format("{}", info.classes - 1).size();
  for (std::int64_t c = static_cast<std::int64_t>(names.size()); c < info.classes; ++c)
    names.push_back(fmt::format("{:0{}}", c, digits));
  for (auto& name : names) {
    std::ranges::replace(name, '/', '_');
    job.disk.make_directories(job.directory + "/" + job.split + "/" + name);
  }
  job.each([&](Sample& sample, std::uint64_t i) {
    const auto label = static_cast<std::size_t>(sample.field<std::int32_t>(1)[0]);
    Writer file(job.disk, fmt::format("{}/{}/{}/{:08}.png", job.directory, job.split, names[label], i));
    file.write(png_of(job, sample, i));
    file.finish();
  });
}

struct FormatLine {
  const char* name;
  void (*write)(const Conversion& job);
};
constexpr FormatLine formats[] = {
    {"idx", to_idx}, {"npy", to_npy}, {"csv", to_csv}, {"tar", to_tar}, {"images", to_images}};

}  // namespace

std::vector<std::string> convert_formats() {
  std::vector<std::string> names;
  for (const auto& f : formats) names.emplace_back(f.name);
  return names;
}

void convert_dataset(Disk& disk, const std::vector<SplitToConvert>& splits, const std::string& format,
                     const std::string& target, const Progress& progress) {
  const auto line = std::ranges::find(formats, format, [](const FormatLine& f) { return std::string(f.name); });
  if (line == std::end(formats)) {
    const auto names = convert_formats();
    bad_input("cannot write the format '{}'{}; known are: {}", format, did_you_mean(format, names),
              fmt::join(names, ", "));
  }
  for (const auto& [split, dataset] : splits)
    if (dataset->info().inputs > 1)
      bad_input(
          "'{}' holds one input a sample, but here there are {} ({}, ...): a table's columns are all in one with "
          "data.one_hot = 65536",
          format, dataset->info().inputs, to_string(dataset->fields()[0]));
  if (disk.exists(target))
    bad_input("{} exists already: nothing was changed; give another target, or remove it first", target);
  const std::string beside = target + ".partial";
  disk.remove_all(beside);
  disk.make_directories(beside);
  try {
    for (const auto& [split, dataset] : splits) {
      const double size = std::max<double>(1, static_cast<double>(dataset->size()));
      line->write({disk, *dataset, beside, split, [&](std::uint64_t n) {
                     if (progress) progress(split, static_cast<double>(n) / size);
                   }});
      if (progress) progress(split, 1);
    }
    disk.sync_directory(beside);
    disk.rename(beside, target);
  } catch (...) {
    try {
      disk.remove_all(beside);
    } catch (const Error&) {  // the first error is the one to tell
    }
    throw;
  }
}

}  // namespace echelon::data
