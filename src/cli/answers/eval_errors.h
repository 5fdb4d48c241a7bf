#pragma once
// Where a network is wrong: the worst mistakes, how each class or label fares, and how well it does for each value of a
// column.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/answers/loaded_run.h"
#include "parallel/step/evaluator.h"

namespace echelon::cli {

// One answer to a sample of an evaluation.
struct JudgedSample {
  std::uint64_t index = 0;        // in the split
  double loss = 0;                // its own: minus the log of what the truth was given; for numbers the squared error
  bool right = false;             // classes; labels: all of them
  std::int64_t is = 0, said = 0;  // classes
  double confidence = 0;          // in what it said
  double target = 0, output = 0;  // numbers: the first target that is furthest off, in its own units
  std::size_t furthest = 0;       // numbers: which target that is
  std::vector<double> off = {};   // numbers: how far off each target is, in its own units
  std::vector<bool> holds = {}, claimed = {};  // labels: what is true, and what was said, of each
};

// Collects the answers of an evaluation.
class ErrorReport {
 public:
  // `by`: a name and the value of each sample; empty: none.
  struct Grouping {
    std::string column;
    std::function<std::string(std::uint64_t index)> value;
  };
  // What the answers are, and where a sample comes from: the names of classes, of labels, or of numbers.
  struct Meaning {
    std::vector<std::string> classes = {}, labels = {}, numbers = {};
    std::function<std::uint64_t(std::uint64_t index)> row = {};  // of a table, from 1; empty: no table
    std::function<std::string(std::uint64_t index)> file = {};   // of a folder of pictures; empty: no such
  };
  ErrorReport(Meaning meaning, std::size_t worst, Grouping by)
      : classes_(std::move(meaning.classes)),
        labels_(std::move(meaning.labels)),
        numbers_(std::move(meaning.numbers)),
        row_(std::move(meaning.row)),
        file_(std::move(meaning.file)),
        worst_count_(worst),
        by_(std::move(by)) {}

  void add(const JudgedSample& sample);
  std::string text() const;
  Json to_json() const;

 private:
  struct Share {  // of samples with something in common
    std::string name;
    std::int64_t samples = 0, right = 0;
    double loss = 0;
    std::vector<double> off = {};                     // of numbers: the sum for each
    std::vector<std::int64_t> said = {};              // how often each class, of a class
    std::int64_t holds = 0, missed = 0, wrongly = 0;  // of a label: true; not said though true; said though not true
  };
  Share& class_of(std::int64_t label);
  Share& group_of(const std::string& value);
  std::string common_mistake(const Share& share, std::size_t own) const;  // "7 (4 times)", or "-"
  bool has_classes() const { return !classes_.empty(); }
  bool has_labels() const { return !labels_.empty(); }
  std::string labels_text(const std::vector<bool>& which) const;  // "spam;ad", or "-"
  std::string worst_text() const;
  std::vector<std::string> number_errors() const;  // names: "mae", or "mae[price]" of several numbers

  std::vector<std::string> classes_, labels_, numbers_;
  std::function<std::uint64_t(std::uint64_t)> row_;
  std::function<std::string(std::uint64_t)> file_;
  std::size_t worst_count_;
  Grouping by_;
  std::vector<JudgedSample> worst_;  // the greatest loss first
  std::vector<Share> by_class_, by_label_, groups_;
};

}  // namespace echelon::cli
