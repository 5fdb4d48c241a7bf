#pragma once
// How many classes a data set has whose labels are numbers and which does not say it itself: one more than the largest
// label, unless a label stands so far from the others that it is more likely a mistake. Then the user is asked.
// Takes at most 2 MiB, whatever the labels are. Not thread-safe.

#include <cstdint>
#include <string>
#include <vector>

namespace echelon::data {

class ClassCounter {
 public:
  // What has the labels: samples, one each; or the tokens of sequences, where a short text has few of a vocabulary.
  enum class Of { samples, tokens };
  explicit ClassCounter(Of what = Of::samples) : what_(what) {}

  void add(std::int64_t label, std::uint64_t row);  // label >= 0; rows are counted from 0 and do not fall
  // BadInput naming `file`, the labels and a row, if far more classes would be empty than not:
  //   "labels.npy: labels 0-9 and one 77, in row 1203 (counted from 0): set classes = 78 if that is meant"
  std::int64_t classes(const std::string& file) const;

 private:
  static constexpr std::int64_t near = 1 << 24;  // labels below it are remembered one by one

  struct Record {  // a label that was larger than all before it
    std::int64_t label;
    std::uint64_t row;
  };
  // The labels on both sides of the widest gap: the largest before it and the least behind it.
  struct Gap {
    std::int64_t before = -1, behind = 0;
  };
  Gap widest_gap() const;

  Of what_;
  std::vector<bool> seen_;
  std::int64_t distinct_ = 0, far_least_ = 0;
  bool far_ = false;  // whether there is a label from `near` on
  std::vector<Record> records_;
};

}  // namespace echelon::data
