#include "data/kinds.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/files/catalog.h"
#include "data/formats/cifar.h"
#include "data/formats/csv.h"
#include "data/formats/folder.h"
#include "data/formats/idx.h"
#include "data/formats/npy.h"
#include "data/formats/npz.h"
#include "data/formats/shards.h"
#include "data/formats/synthetic.h"
#include "data/graph/kind.h"
#include "data/memory.h"
#include "data/table/kind.h"
#include "data/text/kind.h"

namespace echelon::data {

void only_train(const std::string& split, const std::string& what) {
  if (split != "train")
    throw NoSplit(fmt::format("{} has no samples of their own for the split '{}': keep some back with {} = 0.1", what,
                              split, split));
}

namespace {

using Path = DataPath;

Path read_path(OptionReader& table, const Path& fallback) {
  if (fallback && !table.has("path")) return fallback;
  table.require("path", "say where the data are");
  return [path = table.text("path", "")](Disk&) { return path; };
}

Path in_directory(OptionReader& table) {
  return [path = table.text("path", ".")](Disk&) { return path; };
}

ArrayOptions read_array_options(OptionReader& table) {
  ArrayOptions o;
  using Input = ArrayOptions::Input;
  o.input = pick<Input>(table, "input",
                        {{"automatic", Input::automatic},
                         {"image", Input::image},
                         {"features", Input::features},
                         {"tokens", Input::tokens}});
  o.channels_last = table.flag("channels_last", false);
  if (table.has("scale")) o.scale = static_cast<float>(table.number("scale", 1));
  o.classes = table.integer("classes", 0, 0, 1 << 30);
  o.class_names = table.texts("class_names", {});
  return o;
}

OpenSplit read_idx_kind(OptionReader& table, const Path& fallback) {
  const std::string images = table.text("images", ""), labels = table.text("labels", "");
  const bool pair = !images.empty();
  const Path where = pair ? in_directory(table) : read_path(table, fallback);
  const ArrayOptions options = read_array_options(table);
  if (!pair && !labels.empty()) table.problem("labels", "needs images beside it");
  return [=](Disk& disk, const std::string& split) -> DatasetPtr {
    if (!pair) return open_idx(disk, where(disk), split, options);
    only_train(split, images);
    const std::string path = where(disk);
    std::optional<Array> y;
    if (!labels.empty()) y = open_idx_file(disk, path + "/" + labels);
    Array x = open_idx_file(disk, path + "/" + images, y ? std::optional(y->count) : std::nullopt);
    return array_dataset(std::move(x), std::move(y), options);
  };
}

OpenSplit read_cifar10_kind(OptionReader& table, const Path& fallback) {
  const Path where = read_path(table, fallback);
  return [=](Disk& disk, const std::string& split) { return open_cifar(disk, where(disk), split, {}); };
}

OpenSplit read_cifar100_kind(OptionReader& table, const Path& fallback) {
  const Path where = read_path(table, fallback);
  const CifarOptions options{.hundred = true, .coarse = table.flag("coarse", false)};
  return [=](Disk& disk, const std::string& split) { return open_cifar(disk, where(disk), split, options); };
}

OpenSplit read_npy_kind(OptionReader& table, const Path& fallback) {
  const std::string x = table.text("x", ""), y = table.text("y", "");
  const Path where = x.empty() ? read_path(table, fallback) : in_directory(table);
  const ArrayOptions options = read_array_options(table);
  if (x.empty() && !y.empty()) table.problem("y", "needs x beside it");
  return [=](Disk& disk, const std::string& split) -> DatasetPtr {
    if (!x.empty()) only_train(split, x);
    const std::string path = where(disk);
    const std::string xs = path + "/" + (x.empty() ? split + "_x.npy" : x),
                      ys = path + "/" + (x.empty() ? split + "_y.npy" : y);
    std::optional<Array> labels;
    if (!y.empty() || (x.empty() && disk.exists(ys))) labels = open_npy(disk, ys);
    return array_dataset(open_npy(disk, xs), std::move(labels), options);
  };
}

OpenSplit read_npz_kind(OptionReader& table, const Path& fallback) {
  const Path where = read_path(table, fallback);
  const std::string x = table.text("x", ""), y = table.text("y", "");
  const ArrayOptions options = read_array_options(table);
  if (x.empty() && !y.empty()) table.problem("y", "needs x beside it");
  return [=](Disk& disk, const std::string& split) -> DatasetPtr {
    const std::string path = where(disk);
    const auto source = open_source(disk, path);
    const auto names = npz_names(*source);
    const auto has = [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); };
    std::string xs = x, ys = y;
    if (x.empty()) {  // x_train and y_train, or x and y
      const bool by_split = has("x_" + split);
      if (!by_split) only_train(split, path);
      xs = by_split ? "x_" + split : "x", ys = by_split ? "y_" + split : "y";
      if (!has(ys)) ys.clear();
    } else {
      only_train(split, path);
    }
    auto arrays = read_npz(source, ys.empty() ? std::vector{xs} : std::vector{xs, ys});
    std::optional<Array> labels;
    if (!ys.empty()) labels = arrays.at(ys);
    return array_dataset(arrays.at(xs), std::move(labels), options);
  };
}

OpenSplit read_csv_kind(OptionReader& table, const Path& fallback) {
  const Path where = read_path(table, fallback);
  CsvOptions o;
  const std::string delimiter = table.text("delimiter", ",");
  if (delimiter.size() != 1 || delimiter == "\"" || delimiter == "\n")
    table.problem("delimiter", "must be one character, such as \",\" or \"\\t\"");
  else
    o.delimiter = delimiter[0];
  using Header = CsvOptions::Header;
  using Task = CsvOptions::Task;
  o.header =
      pick<Header>(table, "header", {{"automatic", Header::automatic}, {"yes", Header::yes}, {"no", Header::no}});
  o.task = pick<Task>(
      table, "task",
      {{"automatic", Task::automatic}, {"classify", Task::classify}, {"regress", Task::regress}, {"none", Task::none}});
  o.label = table.text("label", "");
  o.ignore = table.texts("ignore", {});
  o.class_names = table.texts("class_names", {});
  o.classes = table.integer("classes", 0, 0, 1 << 30);
  return [=](Disk& disk, const std::string& split) -> DatasetPtr {
    const std::string path = where(disk);
    if (!disk.is_directory(path)) only_train(split, path);
    return open_csv(disk, path, split, o);
  };
}

ImageOptions read_image_options(OptionReader& table) {
  ImageOptions o;
  const auto size = table.integers("size", {}, 1, 4096);  // one side, or height and width
  if (size.size() == 1) o.extent = ImageExtent{size[0], size[0]};
  if (size.size() == 2) o.extent = ImageExtent{size[0], size[1]};
  if (size.size() > 2) table.problem("size", "must be one number, or height and width");
  o.channels = static_cast<int>(table.integer("channels", 3, 1, 3));
  if (o.channels == 2) table.problem("channels", "must be 1 (grey) or 3 (colour)"), o.channels = 3;
  o.fit = pick<Fit>(table, "fit", {{"stretch", Fit::stretch}, {"cover", Fit::cover}});
  return o;
}

OpenSplit read_images_kind(OptionReader& table, const Path& fallback) {
  const Path where = read_path(table, fallback);
  const ImageOptions options = read_image_options(table);
  return [=](Disk& disk, const std::string& split) -> DatasetPtr {
    const std::string path = where(disk);
    if (!has_split(disk, path, split)) only_train(split, path);
    return open_image_folder(disk, path, split, options);
  };
}

OpenSplit read_tar_kind(OptionReader& table, const Path& fallback) {
  const Path where = read_path(table, fallback);
  const ShardOptions options{read_image_options(table), table.integer("length", 0, 0, 1 << 20),
                             table.integer("classes", 0, 0, 1 << 30)};
  return [=](Disk& disk, const std::string& split) -> DatasetPtr {
    const std::string path = where(disk);
    if (!has_shards_of(disk, path, split)) only_train(split, path);
    return open_shards(disk, path, split, options);
  };
}

OpenSplit read_synthetic_kind(OptionReader& table, const Path&) {
  SyntheticOptions o;
  using Kind = SyntheticOptions::Kind;
  o.kind =
      pick<Kind>(table, "make",
                 {{"blobs", Kind::blobs}, {"images", Kind::images}, {"tokens", Kind::tokens}, {"lists", Kind::lists}});
  const std::vector<std::int64_t> usual = o.kind == Kind::blobs    ? std::vector<std::int64_t>{16}
                                          : o.kind == Kind::images ? std::vector<std::int64_t>{1, 28, 28}
                                                                   : std::vector<std::int64_t>{64};
  const auto shape = table.integers("shape", usual, 1, 1 << 28);
  if (shape.empty() || shape.size() >= Shape::max_rank)
    table.problem("shape", fmt::format("must have 1 to {} extents", Shape::max_rank - 1));
  else
    o.shape = Shape(shape);
  o.samples = static_cast<std::uint64_t>(table.integer("samples", 1000, 1, most_samples));
  const auto test = static_cast<std::uint64_t>(table.integer(
      "samples_test", static_cast<std::int64_t>(std::max<std::uint64_t>(1, o.samples / 5)), 1, most_samples));
  o.classes = table.integer("classes", 10, 1, 1 << 28);
  o.seed = static_cast<std::uint64_t>(table.integer("seed", 1, 0));
  o.noise = table.number("noise", 0.25, 0, 1e6);
  return [=](Disk&, const std::string& split) {
    SyntheticOptions options = o;
    if (split != "train") options.samples = test;
    return make_synthetic(split, options);
  };
}

OpenSplit read_table_kind_at(OptionReader& table, const Path& fallback) {
  return read_table_kind(table, read_path(table, fallback));
}

OpenSplit read_text_kind_at(OptionReader& table, const Path& fallback) {
  return read_text_kind(table, read_path(table, fallback));
}

struct KindLine {
  const char* name;
  OpenSplit (*read)(OptionReader& table, const Path& fallback);
};
constexpr std::array kinds = {
    KindLine{"idx", read_idx_kind},           KindLine{"cifar10", read_cifar10_kind},
    KindLine{"cifar100", read_cifar100_kind}, KindLine{"npy", read_npy_kind},
    KindLine{"npz", read_npz_kind},           KindLine{"csv", read_csv_kind},
    KindLine{"images", read_images_kind},     KindLine{"tar", read_tar_kind},
    KindLine{"text", read_text_kind_at},      KindLine{"synthetic", read_synthetic_kind},
    KindLine{"table", read_table_kind_at},    KindLine{"graph", read_graph_kind},
};

}  // namespace

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const auto& k : kinds) names.emplace_back(k.name);
  names.emplace_back("memory");
  for (const auto& entry : catalog())
    if (std::ranges::find(names, entry.name) == names.end()) names.push_back(entry.name);
  return names;
}

bool cuts_itself(const std::string& kind) {
  const CatalogEntry* const known = find_in_catalog(kind);
  return (known ? known->format : kind) == "text";
}

OpenSplit read_kind(const std::string& kind, OptionReader& table, const DataPlaces& places) {
  if (kind == "memory") return read_memory_kind(table, places.memory);
  const CatalogEntry* const known = find_in_catalog(kind);
  const auto line =
      std::ranges::find(kinds, known ? known->format : kind, [](const KindLine& k) { return std::string(k.name); });
  invariant(line != kinds.end(), "every kind of data has a reader");
  Path fallback;
  if (known) fallback = [=](Disk& disk) { return find_files(disk, *known, places); };
  return line->read(table, fallback);
}

}  // namespace echelon::data
