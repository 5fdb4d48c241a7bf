#include "data/description.h"

#include <cmath>

#include "base/error.h"

namespace echelon::data {

namespace {

constexpr int description_version = 1;
constexpr std::int64_t most_elements = std::int64_t{1} << 40;  // of a field
constexpr std::int64_t most_described_samples = std::int64_t{1} << 48;
constexpr std::int64_t most_classes = std::int64_t{1} << 31;

// A number with a fraction, or one beyond 64 bits, would be cast without a word.
std::int64_t whole(const Json& json) {
  if (!json.is_number_integer() || (json.is_number_unsigned() && json.get<std::uint64_t>() >> 63))
    bad_input("{:.40} is no whole number in reach", json.dump());
  return json.get<std::int64_t>();
}

std::vector<std::int64_t> whole_numbers(const Json& json) {
  std::vector<std::int64_t> all;
  for (const Json& number : json) all.push_back(whole(number));
  return all;
}

DType read_dtype(const std::string& name) {
  for (const DType t : {DType::f32, DType::i32, DType::u8})
    if (name_of(t) == name) return t;
  bad_input("there is no element type '{:.20}'", name);
}

Shape read_shape(const Json& json) {
  const std::vector<std::int64_t> extents = whole_numbers(json);
  if (extents.size() > Shape::max_rank) bad_input("a field has {} dimensions", extents.size());
  std::int64_t elements = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 1 || extent > most_elements / elements) bad_input("a field has the extent {}", extent);
    elements *= extent;
  }
  return Shape(std::span(extents));
}

Field read_field(const Json& j) {
  Field f{.name = j.at("name").get<std::string>(),
          .dtype = read_dtype(j.at("dtype").get<std::string>()),
          .shape = read_shape(j.at("shape"))};
  if (j.contains("categories")) f.categories = whole_numbers(j.at("categories"));
  for (const std::int64_t n : f.categories)
    if (n < 1 || n > most_classes) bad_input("field '{:.40}' has {} categories", f.name, n);
  if (!f.categories.empty() && std::ssize(f.categories) != f.shape.elements())
    bad_input("field '{:.40}' has categories of {} elements", f.name, f.categories.size());
  return f;
}

TargetColumn read_target(const Json& j) {
  TargetColumn t{.name = j.at("name").get<std::string>(),
                 .mean = j.at("mean").get<double>(),
                 .deviation = j.at("deviation").get<double>(),
                 .binary = j.at("binary").get<bool>()};
  if (!std::isfinite(t.mean) || !std::isfinite(t.deviation) || !(t.deviation > 0))
    bad_input("the target '{:.40}' has the mean {} and the deviation {}", t.name, t.mean, t.deviation);
  return t;
}

class Described : public Dataset {
 public:
  using Dataset::Dataset;
  void get(std::uint64_t, const SampleContext&, SampleRef) const override {
    bad_input("the samples of this run are not at hand: only what they are is known");
  }
};

}  // namespace

Json describe(const DatasetInfo& info) {
  Json fields = Json::array(), targets = Json::array();
  for (const Field& f : info.fields) {
    const std::vector<std::int64_t> shape(f.shape.dims().begin(), f.shape.dims().end());
    fields.push_back({{"name", f.name}, {"dtype", name_of(f.dtype)}, {"shape", shape}});
    if (!f.categories.empty()) fields.back()["categories"] = f.categories;
  }
  for (const TargetColumn& t : info.targets)
    targets.push_back({{"name", t.name}, {"mean", t.mean}, {"deviation", t.deviation}, {"binary", t.binary}});
  return {{"version", description_version}, {"size", info.size},       {"fields", std::move(fields)},
          {"inputs", info.inputs},          {"classes", info.classes}, {"class_names", info.class_names},
          {"targets", std::move(targets)},  {"streams", info.streams}, {"fingerprint", info.fingerprint}};
}

DatasetInfo read_description(const Json& j, std::string_view where) try {
  if (const std::int64_t version = whole(j.at("version")); version != description_version)
    bad_input("version {} was written by another Echelon; this one reads version {}", version, description_version);
  DatasetInfo info;
  const std::int64_t size = whole(j.at("size")), inputs = whole(j.at("inputs"));
  for (const Json& f : j.at("fields")) info.fields.push_back(read_field(f));
  info.classes = whole(j.at("classes"));
  info.class_names = j.at("class_names").get<std::vector<std::string>>();
  for (const Json& t : j.at("targets")) info.targets.push_back(read_target(t));
  info.streams = whole(j.at("streams"));
  info.fingerprint = j.at("fingerprint").get<std::string>();
  if (size < 1 || size > most_described_samples) bad_input("there are {} samples", size);
  if (info.fields.empty() || info.fields.size() > most_fields || inputs < 1 || inputs > std::ssize(info.fields))
    bad_input("of {} fields {} are inputs", info.fields.size(), inputs);
  info.size = static_cast<std::uint64_t>(size);
  info.inputs = static_cast<std::size_t>(inputs);
  if (info.classes < 0 || info.classes > most_classes ||
      (!info.class_names.empty() && std::ssize(info.class_names) != info.classes))
    bad_input("{} classes have {} names", info.classes, info.class_names.size());
  if (info.streams < 0) bad_input("there are {} streams", info.streams);
  return info;
} catch (const Json::exception& problem) {
  bad_input("{}: this is no description of samples ({})", where, problem.what());
} catch (const BadInput& problem) {
  bad_input("{}: {}", where, problem.what());
}

DatasetPtr described_samples(DatasetInfo info) { return std::make_shared<Described>(std::move(info)); }

}  // namespace echelon::data
