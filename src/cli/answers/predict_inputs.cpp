#include "cli/answers/predict_inputs.h"

#include <algorithm>

#include "base/error.h"
#include "cli/answers/input_reader.h"

namespace echelon::cli {

using data::DatasetPtr;

data::DatasetPtr open_predict_array(Disk& disk, const LoadedRun& run, const data::Array& array) {
  const InputReader reader(disk, run);
  return reader.as_seen(reader.open(array).samples);
}

PredictInputs open_predict_inputs(Disk& disk, const LoadedRun& run, const std::vector<std::string>& inputs) {
  InputReader reader(disk, run);
  std::vector<InputReader::Part> parts;
  std::string problems;
  for (const std::string& input : inputs) try {
      parts.push_back(reader.open(input));
    } catch (const BadInput& problem) {
      problems += (problems.empty() ? "" : "\n") + std::string(problem.what());
    } catch (const DiskError& problem) {
      problems += (problems.empty() ? "" : "\n") + std::string(problem.what());
    }
  if (!problems.empty()) throw BadInput(problems);
  PredictInputs all;
  std::vector<DatasetPtr> samples;
  for (const auto& part : parts) {
    samples.push_back(part.samples);
    all.notes.insert(all.notes.end(), part.notes.begin(), part.notes.end());
  }
  const DatasetPtr together = samples.size() == 1 ? samples.front() : data::concatenated(samples);
  all.samples = reader.as_seen(together);
  all.small = std::ranges::all_of(parts, &InputReader::Part::small);
  all.name = [parts, inputs](std::uint64_t i) {
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (i < parts[p].samples->size()) {
        const bool counted = parts.size() > 1 && !parts[p].pictures && !parts[p].small;
        return counted ? fmt::format("{}:{}", inputs[p], parts[p].name(i)) : parts[p].name(i);
      }
      i -= parts[p].samples->size();
    }
    return std::string();
  };
  all.all_problems = [together] {
    std::vector<std::string> found;
    data::Sample sample(together->fields());
    for (std::uint64_t i = 0; i < together->size(); ++i) try {
        together->get(i, {}, sample.ref());
      } catch (const Error& problem) {
        found.emplace_back(problem.what());
      }
    return found;
  };
  return all;
}

}  // namespace echelon::cli
