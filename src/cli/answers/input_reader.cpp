#include "cli/answers/input_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/listed.h"
#include "cli/answers/input_samples.h"
#include "cli/answers/number_rows.h"
#include "data/files/catalog.h"
#include "data/formats/folder.h"
#include "data/formats/idx.h"
#include "data/formats/npy.h"
#include "data/formats/npz.h"
#include "data/images/image.h"
#include "data/table/encoder.h"
#include "world/os/nearest_file.h"
#include "world/os/standard_input.h"

namespace echelon::cli {

namespace {

using data::DatasetPtr;

constexpr std::uint64_t most_input_bytes = 1u << 30;

bool ends_with_any(const std::string& name, std::initializer_list<const char*> ends) {
  return std::ranges::any_of(ends, [&](const char* end) { return name.ends_with(end); });
}

std::string without_gz(const std::string& name) {
  return name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
}

std::string text_option(const Options& table, const char* key, const std::string& fallback) {
  const auto it = table.items.find(key);
  const auto* text = it == table.items.end() ? nullptr : std::get_if<std::string>(&it->second.value);
  return text ? *text : fallback;
}

data::DataSpec spec_of(const Options& table) {
  Problems problems;
  OptionReader reader(table, problems);
  data::DataSpec spec = data::read_data_spec(reader);
  problems.throw_if_any("data");
  return spec;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

InputReader::Part numbered(DatasetPtr samples) {
  return {.samples = std::move(samples), .name = [](std::uint64_t i) { return std::to_string(i); }};
}

}  // namespace

InputReader::InputReader(Disk& disk, const LoadedRun& run)
    : disk_(disk), run_(run), spec_(spec_of(run.prepared.recipe.data)) {
  plain_ = run.prepared.plain;
  field_ = plain_.fields[0];
  encoder_ = run.prepared.train->info().table;
  inputs_ = plain_.inputs;
}

InputReader::Part InputReader::open(const data::Array& array) const { return from_array(array.source->name(), array); }

InputReader::Part InputReader::open(const std::string& input) {
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

DatasetPtr InputReader::as_seen(DatasetPtr inputs) const {
  return spec_.transformed(with_zeros(plain_, std::move(inputs), inputs_), false);
}

bool InputReader::reads_pictures() const {
  const Shape& s = field_.shape;
  return field_.dtype == DType::f32 && s.rank() == 3 && (s[0] == 1 || s[0] == 3);
}

InputReader::Part InputReader::from_pictures(std::vector<std::string> paths, bool small) const {
  if (!reads_pictures()) bad_input("{}: this network reads {}, not pictures", paths.front(), data::to_string(field_));
  const bool cover = text_option(run_.prepared.recipe.data, "fit", "stretch") == "cover";
  Part part{.samples = picture_samples(disk_, field_, paths, cover ? data::Fit::cover : data::Fit::stretch),
            .name = [paths](std::uint64_t i) { return paths[i]; },
            .pictures = true,
            .small = small};
  return part;
}

InputReader::Part InputReader::from_folder(const std::string& folder) const {
  std::vector<std::string> paths = reads_pictures() ? pictures_below(disk_, folder) : std::vector<std::string>();
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

InputReader::Part InputReader::from_set(const std::string& name) const {
  Options table = run_.prepared.recipe.data;
  for (const char* key : {"holdout", "limit", "limit_test", "path"}) table.items.erase(key);
  table.items["kind"].value = name;
  return from_dataset(name, spec_of(table).open_plain(disk_, "test"));
}

InputReader::Part InputReader::from_dataset(const std::string& what, DatasetPtr dataset) const {
  expect_fields(what, dataset->fields()[0]);
  return numbered(first_fields(std::move(dataset), inputs_));
}

InputReader::Part InputReader::from_array(const std::string& file, const data::Array& array) const {
  if (array.sample.elements() != field_.shape.elements())
    bad_input("{}: its samples are {}, and this network reads {}", file, to_string(array.sample),
              data::to_string(field_));
  data::ArrayOptions options;
  using Input = data::ArrayOptions::Input;
  options.input = field_.dtype == DType::i32 ? Input::tokens
                  : field_.shape.rank() == 3 ? Input::image
                                             : Input::features;
  options.fingerprint = false;  // nobody asks what was predicted
  data::Array x = array;
  if (field_.shape.rank() == 3 && x.sample.elements() == field_.shape.elements() && x.sample.rank() < 2)
    x.sample = field_.shape;
  const DatasetPtr dataset = data::array_dataset(x, std::nullopt, options);
  expect_fields(file, dataset->fields()[0]);
  return numbered(dataset);
}

InputReader::Part InputReader::from_npz(const std::string& file) const {
  const auto source = data::open_source(disk_, file);
  const auto names = data::npz_names(*source);
  for (const char* wanted : {"x", "x_test", "x_train"})
    if (std::ranges::find(names, wanted) != names.end())
      return from_array(file, data::read_npz(source, {wanted}).at(wanted));
  bad_input("{}: it has no array x, x_test or x_train", file);
}

void InputReader::expect_fields(const std::string& what, const data::Field& found) const {
  if (found.dtype != field_.dtype || found.bytes() != field_.bytes())
    bad_input("{}: its samples are {}, and this network reads {}", what, data::to_string(found),
              data::to_string(field_));
}

InputReader::Part InputReader::from_bytes(const std::string& name, std::vector<std::byte> bytes) const {
  if (bytes.empty()) bad_input("{}: nothing came", name);
  return from_table(data::memory_source(name, std::move(bytes)));
}

InputReader::Part InputReader::from_words(const std::string& text) const {
  const bool several = text.find_first_of(encoder_ ? ",;\t|{" : ",") != std::string::npos;
  const bool number = text.find_first_not_of("0123456789.+-eE") == std::string::npos;
  const bool path = text.find('/') != std::string::npos && !several;  // a cell may have a date such as 3/17/2024
  if (path || !(encoder_ || several || number))
    bad_input("'{}' is neither a file nor a folder, and no row of cells with commas between them{}", text,
              did_you_mean_file(disk_, text));
  if (encoder_ && !several && encoder_->columns_read().size() > 1)
    bad_input("'{}': there is no such file or folder{}; a row has {} cells with commas between them: {}", text,
              did_you_mean_file(disk_, text), encoder_->columns_read().size(), listed(encoder_->columns_read()));
  Part part = from_table(data::memory_source("'" + text + "'", bytes_of(text + "\n")), true);
  part.name = [text](std::uint64_t) { return text; };
  part.small = true;
  return part;
}

// The rows of a table as the training's own were: `row`: one row of cells without a header.
InputReader::Part InputReader::from_table(const data::SourcePtr& source, bool row) const {
  if (!encoder_) return from_numbers(source);
  const data::Table table = row ? encoder_->read_row(source) : encoder_->read(source, false);
  data::TableEncoder::Remarks remarks;
  Part part{.samples = encoder_->encode(table, false, &remarks), .name = {}};
  part.name = [](std::uint64_t i) { return std::to_string(i + 1); };
  for (const std::string& sentence : remarks.sentences(table.rows))
    part.notes.push_back(fmt::format("{}: {}", source->name(), sentence));
  return part;
}

InputReader::Part InputReader::from_numbers(const data::SourcePtr& source) const {
  if (field_.dtype != DType::f32)
    bad_input("{}: this network reads {}, not rows of numbers", source->name(), data::to_string(field_));
  const Options& table = run_.prepared.recipe.data;
  const std::string delimiter = text_option(table, "delimiter", ",");
  std::vector<float> numbers = read_number_rows(
      *source, {delimiter.empty() ? ',' : delimiter[0], text_option(table, "label", ""), field_.shape});
  Part part{.samples = rows_of_numbers(field_, std::move(numbers)), .name = {}};
  part.name = [](std::uint64_t i) { return std::to_string(i + 1); };
  return part;
}

}  // namespace echelon::cli
