#include "data/formats/idx.h"

#include "base/error.h"

namespace echelon::data {

namespace {

Element element_of_code(std::uint64_t code, const Source& source) {
  switch (code) {
    case 0x08: return Element::u8;
    case 0x09: return Element::i8;
    case 0x0B: return Element::i16;
    case 0x0C: return Element::i32;
    case 0x0D: return Element::f32;
    case 0x0E: return Element::f64;
  }
  corrupt(source, 2, "an IDX type (8, 9, 11, 12, 13 or 14)", fmt::format("{}", code));
}

std::string existing(Disk& disk, const std::string& path) {
  if (disk.exists(path)) return path;
  if (disk.exists(path + ".gz")) return path + ".gz";
  bad_input("{}: there is no such file, nor {}.gz (is the path of the data set right? 'echelon data list' knows some)",
            path, path);
}

struct IdxHeader {
  Element element;
  std::vector<std::uint64_t> extents;
  std::uint64_t bytes;  // of the header
};

IdxHeader read_idx_header(const Source& source) {
  Reader reader(source);
  if (const auto zero = reader.big(2, "the two zero bytes that begin an IDX file"); zero != 0)
    corrupt(source, 0, "the two zero bytes that begin an IDX file", fmt::format("{:#06x}", zero));
  const Element element = element_of_code(reader.big(1, "an IDX type"), source);
  const std::uint64_t dimensions = reader.big(1, "the number of dimensions");
  if (dimensions < 1 || dimensions > 6) corrupt(source, 3, "1 to 6 dimensions", fmt::format("{}", dimensions));
  std::vector<std::uint64_t> extents;
  for (std::uint64_t i = 0; i < dimensions; ++i) extents.push_back(reader.big(4, "an extent"));
  return {element, std::move(extents), reader.offset()};
}

}  // namespace

Array read_idx(SourcePtr source) {
  const IdxHeader header = read_idx_header(*source);
  return dense_array(std::move(source), header.element, /*big_endian=*/true, header.extents, header.bytes);
}

Array open_idx_file(Disk& disk, const std::string& path, std::optional<std::uint64_t> samples) {
  return read_idx(open_source(disk, path, default_memory_limit, [&](const Source& beginning) {
    const IdxHeader header = read_idx_header(beginning);
    if (samples && header.extents[0] != *samples)
      corrupt(beginning, 4, fmt::format("{} samples, as there are labels", *samples),
              fmt::to_string(header.extents[0]));
    return declared_bytes(beginning, header.element, header.extents, header.bytes);
  }));
}

std::shared_ptr<const Dataset> open_idx(Disk& disk, const std::string& directory, const std::string& split,
                                        const ArrayOptions& options) {
  const std::string stem = directory + "/" + (split == "test" ? "t10k" : split);
  const std::string images_path = existing(disk, stem + "-images-idx3-ubyte");
  Array labels = open_idx_file(disk, existing(disk, stem + "-labels-idx1-ubyte"));  // first: they say how many
  Array images = open_idx_file(disk, images_path, labels.count);
  ArrayOptions named = options;
  if (named.class_names.empty()) named.class_names = read_class_names(disk, directory + "/classes.txt");
  return array_dataset(std::move(images), std::move(labels), named);
}

}  // namespace echelon::data
