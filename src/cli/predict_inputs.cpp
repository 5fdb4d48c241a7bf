#include "cli/predict_inputs.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "data/catalog.h"
#include "data/formats/csv.h"
#include "data/formats/folder.h"
#include "data/formats/idx.h"
#include "data/formats/npy.h"
#include "data/formats/npz.h"
#include "data/image.h"
#include "data/table/encoder.h"
#include "world/os/standard_input.h"

namespace echelon::cli {

namespace {

using data::DatasetPtr;

constexpr std::uint64_t most_input_bytes = 1u << 30, most_picture_bytes = 256u << 20;

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

bool ends_with_any(const std::string& name, std::initializer_list<const char*> ends) {
  return std::ranges::any_of(ends, [&](const char* end) { return name.ends_with(end); });
}

std::string without_gz(const std::string& name) {
  return name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
}

// All pictures below a folder, in the order of names.
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

std::string text_option(const Options& table, const char* key, const std::string& fallback) {
  const auto it = table.items.find(key);
  const auto* text = it == table.items.end() ? nullptr : std::get_if<std::string>(&it->second.value);
  return text ? *text : fallback;
}

// What the inputs of a run become samples by: the data it was trained on.
class InputReader {
 public:
  InputReader(Disk& disk, const LoadedRun& run) : disk_(disk), run_(run), spec_(spec_of(run.prepared.recipe.data)) {
    plain_ = spec_.open_plain(disk, run.prepared.test ? "test" : "train")->info();
    field_ = plain_.fields[0];
    encoder_ = run.prepared.train->info().table;
    inputs_ = plain_.inputs;
  }

  // A part of the inputs: samples with the input fields alone, and their names.
  struct Part {
    DatasetPtr samples;
    std::function<std::string(std::uint64_t)> name;
    bool pictures = false, small = false;
    std::vector<std::string> notes = {};
  };

  Part open(const std::string& input) {
    if (input == "-") return from_bytes("standard input", read_standard_input(most_input_bytes));
    if (!disk_.exists(input)) {
      if (data::find_in_catalog(input)) return from_set(input);
      return from_words(input);
    }
    if (disk_.is_directory(input)) return from_folder(input);
    const std::string name = without_gz(input);
    if (data::is_picture(name)) return from_pictures({input}, true);
    if (ends_with_any(name, {".npy"})) return from_array(input, data::open_npy(disk_, input));
    if (name.find("idx") != std::string::npos && ends_with_any(name, {"-ubyte", ".idx"}))
      return from_array(input, data::open_idx_file(disk_, input));
    if (ends_with_any(name, {".npz"})) return from_npz(input);
    return from_table(data::open_source(disk_, input));
  }

  DatasetPtr as_seen(DatasetPtr inputs) const {
    return spec_.transformed(std::make_shared<OnlyInputs>(plain_, std::move(inputs), inputs_), false);
  }

 private:
  static data::DataSpec spec_of(const Options& table) {
    Problems problems;
    OptionReader reader(table, problems);
    data::DataSpec spec = data::read_data_spec(reader);
    problems.throw_if_any("data");
    return spec;
  }

  bool reads_pictures() const {
    const Shape& s = field_.shape;
    return field_.dtype == DType::f32 && s.rank() == 3 && (s[0] == 1 || s[0] == 3);
  }

  Part from_pictures(std::vector<std::string> paths, bool small) const {
    if (!reads_pictures()) bad_input("{}: this network reads {}, not pictures", paths.front(), data::to_string(field_));
    const bool cover = text_option(run_.prepared.recipe.data, "fit", "stretch") == "cover";
    Part part{.samples =
                  std::make_shared<PictureSamples>(disk_, field_, paths, cover ? data::Fit::cover : data::Fit::stretch),
              .name = [paths](std::uint64_t i) { return paths[i]; },
              .pictures = true,
              .small = small};
    return part;
  }

  Part from_folder(const std::string& folder) const {
    std::vector<std::string> paths;
    if (reads_pictures()) collect_pictures(disk_, folder, paths);
    if (!paths.empty()) return from_pictures(std::move(paths), false);
    Options table = run_.prepared.recipe.data;
    table.items["path"].value = folder;
    for (const char* key : {"holdout", "limit", "limit_test"}) table.items.erase(key);
    std::string why;
    for (const char* split : {"test", "train"}) try {
        return from_dataset(folder, spec_of(table).open_plain(disk_, split));
      } catch (const BadInput& problem) {
        why = problem.what();
      }
    bad_input("{}: {}, nor {} data as the run was trained on ({})", folder,
              reads_pictures() ? "there are no PNG or JPEG pictures in it" : "this network reads no pictures",
              spec_.kind(), why);
  }

  Part from_set(const std::string& name) const {
    Options table = run_.prepared.recipe.data;
    for (const char* key : {"holdout", "limit", "limit_test", "path"}) table.items.erase(key);
    table.items["kind"].value = name;
    return from_dataset(name, spec_of(table).open_plain(disk_, "test"));
  }

  Part from_dataset(const std::string& what, DatasetPtr dataset) const {
    expect_fields(what, dataset->fields()[0]);
    return numbered(std::make_shared<FirstFields>(std::move(dataset), inputs_));
  }

  Part from_array(const std::string& file, const data::Array& array) const {
    if (array.sample.elements() != field_.shape.elements())
      bad_input("{}: its samples are {}, and this network reads {}", file, to_string(array.sample),
                data::to_string(field_));
    data::ArrayOptions options;
    using Input = data::ArrayOptions::Input;
    options.input = field_.dtype == DType::i32 ? Input::tokens
                    : field_.shape.rank() == 3 ? Input::image
                                               : Input::features;
    data::Array x = array;
    if (field_.shape.rank() == 3 && x.sample.elements() == field_.shape.elements() && x.sample.rank() < 2)
      x.sample = field_.shape;
    const DatasetPtr dataset = data::array_dataset(x, std::nullopt, options);
    expect_fields(file, dataset->fields()[0]);
    return numbered(dataset);
  }

  Part from_npz(const std::string& file) const {
    const auto source = data::open_source(disk_, file);
    const auto names = data::npz_names(*source);
    for (const char* wanted : {"x", "x_test", "x_train"})
      if (std::ranges::find(names, wanted) != names.end())
        return from_array(file, data::read_npz(source, {wanted}).at(wanted));
    bad_input("{}: it has no array x, x_test or x_train", file);
  }

  void expect_fields(const std::string& what, const data::Field& found) const {
    if (found.dtype != field_.dtype || found.bytes() != field_.bytes())
      bad_input("{}: its samples are {}, and this network reads {}", what, data::to_string(found),
                data::to_string(field_));
  }

  Part from_bytes(const std::string& name, std::vector<std::byte> bytes) const {
    if (bytes.empty()) bad_input("{}: nothing came", name);
    return from_table(data::memory_source(name, std::move(bytes)));
  }

  Part from_words(const std::string& text) const {
    const bool cells = encoder_ || text.find(',') != std::string::npos ||
                       text.find_first_not_of("0123456789.+-eE") == std::string::npos;
    if (!cells || text.find('/') != std::string::npos)
      bad_input("'{}' is neither a file nor a folder, and no row of cells with commas between them", text);
    Part part = from_table(data::memory_source("'" + text + "'", bytes_of(text + "\n")), true);
    part.name = [text](std::uint64_t) { return text; };
    part.small = true;
    return part;
  }

  static std::vector<std::byte> bytes_of(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }

  // The rows of a table as the training's own were: `row`: one row of cells without a header.
  Part from_table(const data::SourcePtr& source, bool row = false) const {
    if (!encoder_) return from_numbers(source);
    data::FormatWishes wishes;
    if (row) wishes.header = false, wishes.json_lines = false, wishes.delimiter = ',', wishes.decimal = '.';
    const data::Table table = encoder_->read(source, false, wishes);
    data::TableEncoder::Remarks remarks;
    Part part{.samples = encoder_->encode(table, false, &remarks), .name = {}};
    part.name = [](std::uint64_t i) { return std::to_string(i + 1); };
    for (const std::string& sentence : remarks.sentences(table.rows))
      part.notes.push_back(fmt::format("{}: {}", source->name(), sentence));
    return part;
  }

  // Rows of numbers with commas between them, as many as the network reads; a header, and a column of labels, are left
  // out.
  Part from_numbers(const data::SourcePtr& source) const {
    if (field_.dtype != DType::f32)
      bad_input("{}: this network reads {}, not rows of numbers", source->name(), data::to_string(field_));
    const Options& table = run_.prepared.recipe.data;
    const std::string delimiter = text_option(table, "delimiter", ",");
    data::CsvRows rows(*source, delimiter.empty() ? ',' : delimiter[0]);
    std::vector<data::CsvRows::Cell> row;
    std::vector<float> numbers;
    std::vector<std::string> problems;
    std::size_t left_out = std::string::npos, width = 0;
    const auto wanted = static_cast<std::size_t>(field_.shape.elements());
    bool first = true;
    while (rows.next(row)) {
      if (first) {
        first = false, width = row.size();
        const bool header = std::ranges::none_of(row, [](const auto& c) { return number_in(c.text).has_value(); });
        if (width == wanted + 1) left_out = label_column(row, header, text_option(table, "label", ""));
        if (width != wanted && left_out == std::string::npos)
          bad_input("{} has {} numbers in a row, but this network reads {} ({})", source->name(), width, wanted,
                    to_string(field_.shape));
        if (header) continue;
      }
      if (row.size() != width) {
        problems.push_back(fmt::format("line {}: {} cells instead of {}", rows.line(), row.size(), width));
        continue;
      }
      for (std::size_t c = 0; c < width; ++c) {
        if (c == left_out) continue;
        const auto value = number_in(row[c].text);
        if (!value)
          problems.push_back(fmt::format("line {}, column {}: '{}' is no number", rows.line(), c + 1, row[c].text));
        numbers.push_back(value.value_or(0));
      }
    }
    if (!problems.empty()) {
      constexpr std::size_t shown = 10;
      std::string text = fmt::format("{}:", source->name());
      for (std::size_t i = 0; i < std::min(shown, problems.size()); ++i) text += "\n  " + problems[i];
      if (problems.size() > shown) text += fmt::format("\n  and {} more", problems.size() - shown);
      throw BadInput(text);
    }
    if (numbers.empty()) bad_input("{}: no row in it", source->name());
    Part part{.samples = std::make_shared<NumberRows>(field_, std::move(numbers)), .name = {}};
    part.name = [](std::uint64_t i) { return std::to_string(i + 1); };
    return part;
  }

  static std::optional<float> number_in(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    float x = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return x;
  }

  static std::size_t label_column(const std::vector<data::CsvRows::Cell>& row, bool header, const std::string& label) {
    if (header)
      for (const std::string& name :
           label.empty() ? std::vector<std::string>{"label", "class", "target"} : std::vector{label})
        for (std::size_t c = 0; c < row.size(); ++c)
          if (row[c].text == name) return c;
    return header && !label.empty() ? std::string::npos : row.size() - 1;
  }

  static Part numbered(DatasetPtr samples) {
    return {.samples = std::move(samples), .name = [](std::uint64_t i) { return std::to_string(i); }};
  }

  Disk& disk_;
  const LoadedRun& run_;
  data::DataSpec spec_;
  data::DatasetInfo plain_;
  data::Field field_;  // the first input
  std::shared_ptr<const data::TableEncoder> encoder_;
  std::size_t inputs_ = 1;  // fields that are inputs
};

}  // namespace

PredictInputs open_predict_inputs(Disk& disk, const LoadedRun& run, const std::vector<std::string>& inputs) {
  InputReader reader(disk, run);
  std::vector<InputReader::Part> parts;
  std::string problems;
  for (const std::string& input : inputs) try {
      parts.push_back(reader.open(input));
    } catch (const BadInput& problem) {
      problems += (problems.empty() ? "" : "\n") + std::string(problem.what());
    } catch (const DiskError& problem) {
      problems += (problems.empty() ? "" : "\n") + std::string(problem.what());
    }
  if (!problems.empty()) throw BadInput(problems);
  PredictInputs all;
  std::vector<DatasetPtr> samples;
  for (const auto& part : parts) {
    samples.push_back(part.samples);
    all.notes.insert(all.notes.end(), part.notes.begin(), part.notes.end());
  }
  const DatasetPtr together = samples.size() == 1 ? samples.front() : data::concatenated(samples);
  all.samples = reader.as_seen(together);
  all.small = std::ranges::all_of(parts, &InputReader::Part::small);
  all.name = [parts, inputs](std::uint64_t i) {
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (i < parts[p].samples->size()) {
        const bool counted = parts.size() > 1 && !parts[p].pictures && !parts[p].small;
        return counted ? fmt::format("{}:{}", inputs[p], parts[p].name(i)) : parts[p].name(i);
      }
      i -= parts[p].samples->size();
    }
    return std::string();
  };
  all.all_problems = [together] {
    std::vector<std::string> found;
    data::Sample sample(together->fields());
    for (std::uint64_t i = 0; i < together->size(); ++i) try {
        together->get(i, {}, sample.ref());
      } catch (const Error& problem) {
        found.emplace_back(problem.what());
      }
    return found;
  };
  return all;
}

}  // namespace echelon::cli
