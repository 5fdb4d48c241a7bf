#pragma once
// One input of `echelon predict` as samples: a picture, a folder, a table, an array, a data set, a row of cells,
// standard input. What it is decides its name, and what is on the disk; what the run was trained on decides what is
// read from it.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/answers/loaded_run.h"
#include "data/array.h"
#include "data/open.h"

namespace echelon::cli {

class InputReader {
 public:
  // The run and the disk must outlive the reader and its samples.
  InputReader(Disk& disk, const LoadedRun& run);

  // Samples with the input fields alone, and their names.
  struct Part {
    data::DatasetPtr samples;
    std::function<std::string(std::uint64_t)> name;
    bool pictures = false, small = false;
    std::vector<std::string> notes = {};
  };
  Part open(const std::string& input);        // BadInput, DiskError
  Part open(const data::Array& array) const;  // that the calling program holds. BadInput

  // Samples that `open` made as the network sees them: transformed, with zeros for the fields that nobody knows.
  data::DatasetPtr as_seen(data::DatasetPtr inputs) const;

 private:
  Part from_pictures(std::vector<std::string> paths, bool small) const;
  Part from_folder(const std::string& folder) const;
  Part from_set(const std::string& name) const;
  Part from_dataset(const std::string& what, data::DatasetPtr dataset) const;
  Part from_array(const std::string& file, const data::Array& array) const;
  Part from_npz(const std::string& file) const;
  Part from_bytes(const std::string& name, std::vector<std::byte> bytes) const;
  Part from_words(const std::string& text) const;
  Part from_table(const data::SourcePtr& source, bool row = false) const;  // a row: cells without a header
  Part from_numbers(const data::SourcePtr& source) const;
  bool reads_pictures() const;
  void expect_fields(const std::string& what, const data::Field& found) const;

  Disk& disk_;
  const LoadedRun& run_;
  data::DataSpec spec_;
  data::DatasetInfo plain_;
  data::Field field_;  // the first input
  std::shared_ptr<const data::TableEncoder> encoder_;
  std::size_t inputs_ = 1;  // fields that are inputs
};

}  // namespace echelon::cli
