#pragma once
// The small file that makes a folder a checkpoint: where in the training it was taken, and the size and hash of every
// file beside it. It carries a hash of its own, and it is accepted only byte by byte as it was written: a flipped bit
// in it is found like one anywhere else.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "track/hashed_file.h"

namespace echelon {

// Where in a training a checkpoint stands.
struct TrainingPosition {
  std::int64_t step = 0;            // updates done
  std::int64_t epoch = 0;           // the one that is under way
  std::int64_t cursor = 0;          // samples of this epoch that were used already
  std::uint64_t seed = 0;           // all random numbers follow from it and from the step
  std::string model;                // fingerprints: resuming with another model, data set or
  std::string data;                 // recipe (batch, update rule, schedule, transforms, but not how
  std::string recipe;               // long to train) is refused by comparing them
  std::optional<int> workers = {};  // where each has its own state: as many must go on; none: any number may
  std::string plan = {};            // the same: how each of these replicas is split; empty: whole
  std::optional<double> score;      // how good the weights are, higher is better; none if not measured
  std::optional<double> loss = {};  // decides between equal scores: lower is better
  Json extra = Json::object();      // whatever else the trainer must know to go on
};

struct Manifest {
  TrainingPosition position;
  std::string weights_sha256;               // track/weights_hash.h
  std::map<std::string, FileDigest> files;  // by name
};

// BadInput that names everything in which a checkpoint belongs to another training than the one that wants to go on
// from it: model, data, seed, and what else of the recipe decides about the weights.
void expect_same_training(const TrainingPosition& saved, const TrainingPosition& wanted, const std::string& checkpoint);

std::string to_text(const Manifest& manifest);

// The manifest of a text; BadInput that says what is wrong with it, beginning with `where`.
Manifest parse_manifest(std::string_view text, const std::string& where);

}  // namespace echelon
