#pragma once
// From what stands behind `echelon predict RUN` to samples as the network sees them: pictures, folders of pictures,
// rows of a table, arrays, data sets of any kind, numbers on the command line, standard input.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/answers/loaded_run.h"
#include "data/array.h"
#include "data/open.h"

namespace echelon::cli {

struct PredictInputs {
  data::DatasetPtr samples;                        // inputs as the network sees them; other fields are zeros
  std::function<std::string(std::uint64_t)> name;  // of a sample: its file, or its row
  std::vector<std::string> notes;                  // what was done about missing or unknown values
  // Everything that is wrong with the samples, once one of them could not be read. May be empty.
  std::function<std::vector<std::string>()> all_problems = {};
  bool small = false;  // a few that were named one by one: to be read by people
};

// BadInput that names every input that cannot be used. The run and the disk must outlive the result.
PredictInputs open_predict_inputs(Disk& disk, const LoadedRun& run, const std::vector<std::string>& inputs);

// The same for samples that the calling program holds.
data::DatasetPtr open_predict_array(Disk& disk, const LoadedRun& run, const data::Array& array);

}  // namespace echelon::cli
