#include "data/memory.h"

#include <algorithm>

#include "base/error.h"

namespace echelon::data {

namespace {

class BorrowedSource : public Source {
 public:
  BorrowedSource(std::string name, std::span<const std::byte> bytes, std::shared_ptr<const void> keeper)
      : Source(std::move(name), bytes.size()), keeper_(std::move(keeper)) {
    set_memory(bytes.data());
  }

 private:
  void do_read(std::uint64_t, std::span<std::byte>) const override {}  // never asked: it is in memory
  std::shared_ptr<const void> keeper_;
};

// Everything but the samples.
class AbsentDataset : public Dataset {
 public:
  using Dataset::Dataset;
  void get(std::uint64_t, const SampleContext&, SampleRef) const override {
    bad_input(
        "the samples of this run were in the memory of the program that trained it, and are not here: hand them over "
        "again, or train on files (docs/data.md)");
  }
  // A cut that keeps the shares of classes asks for them; what it cuts cannot be read anyway.
  std::int32_t label(std::uint64_t) const override { return 0; }
};

Option list_of(const auto& values) {
  Option::List list;
  for (const auto& value : values) list.push_back({value, {}});
  return {std::move(list), {}};
}

Option describe(const Field& field) {
  auto table = std::make_shared<Options>();
  table->where = "data.fields";
  table->items["name"].value = field.name;
  table->items["dtype"].value = std::string(name_of(field.dtype));
  table->items["shape"] = list_of(field.shape.dims());
  return {std::move(table), {}};
}

Field read_field(OptionReader table) {
  Field field;
  field.name = table.text("name", "");
  const std::string dtype = table.choice("dtype", "f32", {"f32", "i32", "u8"});
  field.dtype = dtype == "f32" ? DType::f32 : dtype == "i32" ? DType::i32 : DType::u8;
  const auto shape = table.integers("shape", {}, 1, std::int64_t{1} << 32);
  if (field.name.empty()) table.problem("name", "is missing: what the field is called");
  if (shape.size() > Shape::max_rank)
    table.problem("shape", fmt::format("has more than {} extents", Shape::max_rank));
  else
    field.shape = Shape(shape);
  table.done();
  return field;
}

}  // namespace

SourcePtr borrowed_source(std::string name, std::span<const std::byte> bytes, std::shared_ptr<const void> keeper) {
  return std::make_shared<BorrowedSource>(std::move(name), bytes, std::move(keeper));
}

Options describe_memory(const MemoryParts& parts) {
  const auto train = parts.find("train");
  if (train == parts.end() || !train->second) bad_input("there are no samples to train with: hand over a part 'train'");
  const DatasetInfo& info = train->second->info();
  std::vector<std::string> names, hashes;
  std::vector<std::int64_t> samples;
  Option::List fields;
  for (const auto& [name, part] : parts) {
    if (part->fields() != info.fields)
      bad_input("the samples of the part '{}' are {}, but those that train are {}", name, to_string(part->fields()[0]),
                to_string(info.fields[0]));
    names.push_back(name);
    samples.push_back(static_cast<std::int64_t>(part->size()));
    hashes.push_back(part->info().fingerprint);
  }
  for (const Field& field : info.fields) fields.push_back(describe(field));
  Options table;
  table.where = "data";
  table.items["kind"].value = std::string("memory");
  table.items["parts"] = list_of(names);
  table.items["samples"] = list_of(samples);
  table.items["sha256"] = list_of(hashes);
  table.items["fields"].value = std::move(fields);
  table.items["inputs"].value = static_cast<std::int64_t>(info.inputs);
  table.items["classes"].value = info.classes;
  if (!info.class_names.empty()) table.items["class_names"] = list_of(info.class_names);
  return table;
}

OpenSplit read_memory_kind(OptionReader& table, const MemoryParts& parts) {
  DatasetInfo info;
  for (OptionReader& field : table.tables("fields")) info.fields.push_back(read_field(field));
  const auto names = table.texts("parts", {});
  const auto samples = table.integers("samples", {}, 1);
  const auto hashes = table.texts("sha256", {});
  info.inputs = static_cast<std::size_t>(table.integer("inputs", 1, 1, static_cast<std::int64_t>(most_fields)));
  info.classes = table.integer("classes", 0, 0, 1 << 30);
  info.class_names = table.texts("class_names", {});
  if (names.empty())
    table.problem("kind", "= \"memory\" is for programs that hand over their samples; a recipe names a file's kind");
  else if (names.size() != samples.size() || names.size() != hashes.size())
    table.problem("parts", "must have as many elements as data.samples and data.sha256");
  else if (info.fields.size() < info.inputs || info.fields.size() > most_fields)
    table.problem("fields", fmt::format("must name {} to {} fields", info.inputs, most_fields));
  return [=](Disk&, const std::string& split) -> DatasetPtr {
    const auto described = std::ranges::find(names, split);
    if (described == names.end()) only_train(split, "what was handed over");
    const auto i = static_cast<std::size_t>(described - names.begin());
    if (const auto given = parts.find(split); given != parts.end()) {
      if (given->second->info().fingerprint != hashes[i])
        bad_input("the samples of the part '{}' are others than those that the recipe describes", split);
      return given->second;
    }
    DatasetInfo absent = info;
    absent.size = static_cast<std::uint64_t>(samples[i]);
    absent.fingerprint = hashes[i];
    return std::make_shared<AbsentDataset>(std::move(absent));
  };
}

}  // namespace echelon::data
