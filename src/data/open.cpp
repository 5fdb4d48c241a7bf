#include "data/open.h"

#include <algorithm>

#include "base/error.h"
#include "data/kinds.h"
#include "data/table/open_table.h"
#include "world/os/host.h"

namespace echelon::data {

DataPlaces usual_places() {
  DataPlaces places;
  if (const std::string root = environment("ECHELON_DATA"); !root.empty()) places.root = root;
  const std::string program = program_directory();  // build/echelon in the repository, bin/echelon when installed
  places.share = {"share", program + "/../share", program + "/../share/echelon"};
  return places;
}

DatasetPtr DataSpec::open(Disk& disk, const std::string& split, bool augment) const {
  return transformed(open_plain(disk, split), augment);
}

namespace {

// Other samples of the same kind: classes by the names and numbers that they have in training.
std::function<DatasetPtr(Disk&, const Dataset&)> open_other(const std::string& kind, const Options& table,
                                                            const std::string& path, const DataPlaces& places) {
  if (path.empty()) return {};
  return [=](Disk& disk, const Dataset& training) -> DatasetPtr {
    const DatasetInfo& train = training.info();
    if (train.table_rows) return rows_of_table(read_table_file_like(open_source(disk, path), train.table_rows));
    Options other = table;
    other.items["path"].value = path;
    for (const char* key : {"validation", "test"}) other.items.erase(key);
    if (!train.class_names.empty()) {
      Option::List names;
      for (const std::string& name : train.class_names) names.push_back({name, {}});
      other.items["class_names"].value = std::move(names);
    }
    if (train.classes > 0) other.items["classes"].value = train.classes;
    Problems problems;
    OptionReader reader(other, problems);
    const OpenSplit open = read_kind(kind, reader, places);
    problems.throw_if_any(path);
    DatasetPtr dataset = open(disk, "train");
    if (dataset->info().class_names != train.class_names)
      bad_input("{}: has other classes than the samples that train", path);
    return dataset;
  };
}

// Whether a program has handed over such a part of its samples (data/memory.h).
bool has_part(const std::string& kind, const Options& table, const std::string& part) {
  const auto parts = table.items.find("parts");
  const auto* list = parts == table.items.end() ? nullptr : std::get_if<Option::List>(&parts->second.value);
  return kind == "memory" && list && std::ranges::any_of(*list, [&](const Option& name) {
           const auto* text = std::get_if<std::string>(&name.value);
           return text && *text == part;
         });
}

}  // namespace

DatasetPtr DataSpec::open_plain(Disk& disk, const std::string& split) const {
  DatasetPtr dataset = open_part(disk, split);
  if (dataset->info().table_rows) {  // a table is encoded as its training part says
    const DatasetPtr train = split == "train" ? dataset : open_part(disk, "train");
    dataset = encode_rows(*train, *dataset, split);
  }
  if (cache_limit_ > 0 && !dataset->info().random) dataset = cached(dataset, cache_limit_);
  return dataset;
}

DatasetPtr DataSpec::open_part(Disk& disk, const std::string& split) const {
  DatasetPtr dataset;
  const bool inside = split == "train" || (split == "validation" && !open_validation_) ||
                      (split == "test" && parts_.test > 0);  // a part of the samples that train
  if (cuts_itself_) {
    dataset = open_(disk, split);
  } else if (split == "validation" && open_validation_) {
    dataset = open_validation_(disk, *open_(disk, "train"));
  } else if (split == "test" && open_test_) {
    dataset = open_test_(disk, *open_(disk, "train"));
  } else if (holdout_ > 0) {
    const DatasetPtr whole = open_(disk, "train");
    dataset = held_out(whole, holdout_, inside);
    PartsSpec rest = parts_;  // shares are of all samples
    rest.validation *=
        static_cast<double>(whole->size()) / static_cast<double>(std::max<std::uint64_t>(dataset->size(), 1));
    if (inside && parts_.cuts()) dataset = cut_part(dataset, rest, split);
  } else if (inside && parts_.cuts()) {
    dataset = cut_part(open_(disk, "train"), parts_, split);
  } else {
    dataset = open_(disk, split);
  }
  const std::uint64_t limit = split == "train" ? limit_train_ : limit_test_;
  if (limit == 0 || limit >= dataset->size()) return dataset;
  if (kind_ != "images") return subset(dataset, 0, limit);
  std::vector<std::uint64_t> spread;  // pictures lie class by class: the first ones would be of one class
  for (std::uint64_t i = 0; i < limit; ++i) spread.push_back(i * dataset->size() / limit);
  return selected(dataset, std::move(spread), fmt::format("limit {}", limit));
}

DatasetPtr DataSpec::transformed(DatasetPtr plain, bool augment) const {
  std::vector<TransformPtr> chain;
  for (const auto& make : transforms_)
    if (auto transform = make(augment)) chain.push_back(std::move(transform));
  DatasetPtr dataset = mapped(std::move(plain), std::move(chain));
  return augment && mixup_ > 0 ? mixed_up(std::move(dataset), mixup_) : dataset;
}

DataSpec read_data_spec(OptionReader& table, const DataPlaces& places) {
  DataSpec spec;
  const auto kinds = kind_names();
  if (table.require("kind", "say what the data are, such as \"mnist\" or \"csv\""))
    spec.kind_ = table.choice("kind", "", kinds);
  if (!spec.kind_.empty()) spec.open_ = read_kind(spec.kind_, table, places);
  spec.holdout_ = table.number("holdout", 0, 0, 0.9);
  if (!spec.kind_.empty()) {
    spec.cuts_itself_ = cuts_itself(spec.kind_);
    spec.parts_ = read_parts(table, spec.holdout_);
    spec.open_validation_ = open_other(spec.kind_, table.options(), spec.parts_.validation_path, places);
    spec.open_test_ = open_other(spec.kind_, table.options(), spec.parts_.test_path, places);
    if (has_part(spec.kind_, table.options(), "validation") && !spec.parts_.has_validation())
      spec.open_validation_ = [open = spec.open_](Disk& disk, const Dataset&) { return open(disk, "validation"); };
  }
  spec.partition_ = read_partition(table);
  spec.limit_train_ = static_cast<std::uint64_t>(table.integer("limit", 0, 0));
  spec.limit_test_ = static_cast<std::uint64_t>(table.integer("limit_test", 0, 0));
  if (table.flag("cache", false))
    spec.cache_limit_ = static_cast<std::uint64_t>(table.integer("cache_mib", 4096, 1, 1 << 30)) << 20;
  else
    table.ignore("cache_mib");
  for (auto& transform : table.tables("transform")) {
    const auto kind = transform.options().items.find("kind");
    const auto* name =
        kind == transform.options().items.end() ? nullptr : std::get_if<std::string>(&kind->second.value);
    if (spec.mixup_ > 0) transform.problem("kind", "comes after mixup, which must be the last");
    if (name && *name == "mixup") {  // not a change to one sample
      transform.ignore("kind");
      spec.mixup_ = transform.number("alpha", 0.2, 1e-3, 100);
      transform.done();
    } else if (auto make = read_transform(transform)) {
      spec.transforms_.push_back(std::move(make));
    }
  }
  if (!spec.kind_.empty()) table.done();  // which keys there are depends on the kind
  return spec;
}

DatasetPtr open_dataset(Disk& disk, const Options& options, const std::string& split, const DataPlaces& places) {
  Problems problems;
  OptionReader table(options, problems);
  const DataSpec spec = read_data_spec(table, places);
  problems.throw_if_any("data");
  return spec.open(disk, split);
}

}  // namespace echelon::data
