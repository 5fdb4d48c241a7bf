#pragma once
// One set of samples cut into parts: what trains, what is looked at while it trains (validation), and what is looked at
// once at the end (test). Which sample is in which part is a pure function of (split_seed, index), and where the
// samples have classes every part has its share of each class. The cut is part of the data's fingerprint.
//
// Of a [data] table:
//   validation, test   a share of the samples (0.1), or the path of other samples ("more.csv")
//   split              "random", or "time": the samples are in order, and the last ones are test, those before them
//                      validation. The key `time` of a table (the column that says the order) means "time" too
//   stratify           whether a random cut keeps the shares of the classes (true)
//   split_seed         another random cut (0)
//   folds, fold        validation is fold number `fold` (1 to `folds`) of what is not test

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/options.h"
#include "data/decorators.h"

namespace echelon::data {

struct PartsSpec {
  double validation = 0, test = 0;         // shares of all samples; 0: nothing is cut off
  std::string validation_path, test_path;  // samples from elsewhere
  bool by_time = false, stratify = true;
  std::int64_t folds = 0, fold = 0;  // 0: no folds; `fold` 0: any of them, which is the first
  std::uint64_t seed = 0;

  bool cuts() const { return validation > 0 || test > 0 || folds > 0; }
  bool has_validation() const { return validation > 0 || folds > 0 || !validation_path.empty(); }
};

// Problems are added to the table's. `holdout` is the share that the older key of that name cuts off for the test.
PartsSpec read_parts(OptionReader& table, double holdout);

struct PartIndices {
  std::vector<std::uint64_t> train, validation, test;  // ascending
};

// Cuts `samples` samples. `labels`: the class of each, for a cut that keeps their shares (each part has of each class
// what is due to it, give or take one); empty: no classes.
PartIndices cut_into_parts(const PartsSpec& spec, std::uint64_t samples, std::span<const std::int32_t> labels);

// The samples of one part, "train", "validation" or "test".
DatasetPtr cut_part(DatasetPtr whole, const PartsSpec& spec, const std::string& part);

// Samples in the order of `indices`, each less than the data set's size. `what` goes into the fingerprint.
DatasetPtr selected(DatasetPtr inner, std::vector<std::uint64_t> indices, const std::string& what);

}  // namespace echelon::data
