#pragma once
// Where a network is wrong: the worst mistakes, how each class fares, and how well it does for each value of a column.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/loaded_run.h"
#include "parallel/step/evaluator.h"

namespace echelon::cli {

// One answer to a sample of an evaluation.
struct JudgedSample {
  std::uint64_t index = 0;        // in the split
  double loss = 0;                // its own: minus the log of the probability of the right class; the squared error
  bool right = false;             // classes only
  std::int64_t is = 0, said = 0;  // classes
  double confidence = 0;          // in what it said
  double target = 0, output = 0;  // numbers: the first target that is furthest off, in its own units
};

// Collects the answers of an evaluation.
class ErrorReport {
 public:
  // `by`: a name and the value of each sample; empty: none.
  struct Grouping {
    std::string column;
    std::function<std::string(std::uint64_t index)> value;
  };
  ErrorReport(std::vector<std::string> classes, std::size_t worst, Grouping by)
      : classes_(std::move(classes)), worst_count_(worst), by_(std::move(by)) {}

  void add(const JudgedSample& sample);
  std::string text() const;
  Json to_json() const;

 private:
  struct Share {  // of samples with something in common
    std::string name;
    std::int64_t samples = 0, right = 0;
    double loss = 0;
    std::vector<std::int64_t> said = {};  // how often each class, of a class
  };
  Share& class_of(std::int64_t label);
  Share& group_of(const std::string& value);
  std::string common_mistake(const Share& share, std::size_t own) const;  // "7 (4 times)", or "-"
  bool has_classes() const { return !classes_.empty(); }

  std::vector<std::string> classes_;
  std::size_t worst_count_;
  Grouping by_;
  std::vector<JudgedSample> worst_;  // the greatest loss first
  std::vector<Share> by_class_, groups_;
};

}  // namespace echelon::cli
