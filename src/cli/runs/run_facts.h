#pragma once
// What `echelon runs` says of a run besides its folder: since when, what network, how good at best, and whether it goes
// on, has ended or has died.

#include <optional>
#include <string>
#include <vector>

#include "recipe/load.h"
#include "track/run.h"

namespace echelon::cli {

struct BestScore {
  std::string metric;  // "val_f1": what train.monitor says; else "..._accuracy", or "..._loss" where there is none
  double value = 0;
  std::int64_t step = 0;
};

struct RunFacts {
  RunInfo info;
  Options recipe;     // empty if it cannot be read
  std::string model;  // its name; "-" if the recipe cannot be read
  std::string state;  // "running"; what ended it, as its summary says; "crashed": neither
  std::optional<BestScore> best;
};

// Read without following links out of the folder (world/os/folder_disk.h).
RunFacts run_facts(const RunFolder& folder);

std::string started_text(const RunFacts& facts);  // "2026-11-17 05:38" in UTC, or "-"
std::string best_text(const RunFacts& facts);     // "accuracy 98.30 %", "loss 1.2345", or "-"
Json to_json(const RunFacts& facts);

}  // namespace echelon::cli
