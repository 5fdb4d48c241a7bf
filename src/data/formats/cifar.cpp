#include "data/formats/cifar.h"

#include "base/error.h"
#include "data/decorators.h"

namespace echelon::data {

namespace {

std::vector<std::string> class_names(Disk& disk, const std::string& directory, const CifarOptions& options) {
  const std::string path = directory + (!options.hundred ? "/batches.meta.txt"
                                        : options.coarse ? "/coarse_label_names.txt"
                                                         : "/fine_label_names.txt");
  return read_class_names(disk, path);
}

std::shared_ptr<const Dataset> read_with_names(SourcePtr source, const CifarOptions& options,
                                               std::vector<std::string> names) {
  const std::uint64_t labels = options.hundred ? 2 : 1, record = labels + 3072;
  if (source->size() == 0 || source->size() % record != 0)
    corrupt(*source, source->size() / record * record, fmt::format("records of {} bytes", record),
            fmt::format("{} bytes left over (truncated, or not this format?)", source->size() % record));
  const std::uint64_t count = source->size() / record;
  const std::uint64_t label = options.hundred && !options.coarse ? 1 : 0;
  Array x{source, Element::u8, false, count, Shape{3, 32, 32}, labels, record};
  Array y{source, Element::u8, false, count, Shape{}, label, record};
  ArrayOptions array;
  array.classes = !options.hundred ? 10 : options.coarse ? 20 : 100;
  if (static_cast<std::int64_t>(names.size()) == array.classes) array.class_names = std::move(names);
  return array_dataset(std::move(x), std::move(y), array);
}

}  // namespace

std::shared_ptr<const Dataset> read_cifar(SourcePtr source, const CifarOptions& options) {
  return read_with_names(std::move(source), options, {});
}

std::shared_ptr<const Dataset> open_cifar(Disk& disk, const std::string& directory, const std::string& split,
                                          const CifarOptions& options) {
  std::vector<std::string> files;
  if (options.hundred) {
    files = {split + ".bin"};
  } else if (split == "train") {
    for (int i = 1; i <= 5; ++i) files.push_back(fmt::format("data_batch_{}.bin", i));
  } else {
    files = {split + "_batch.bin"};
  }
  const auto names = class_names(disk, directory, options);
  std::vector<DatasetPtr> parts;
  for (const auto& file : files)
    parts.push_back(read_with_names(open_source(disk, directory + "/" + file), options, names));
  return concatenated(std::move(parts));
}

}  // namespace echelon::data
