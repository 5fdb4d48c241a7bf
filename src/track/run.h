#pragma once
// The folder of a run, and the folder of runs:
//
//   runs/NAME/recipe.toml              the recipe, resolved: what was really run
//             table.json               of a run on a table: how its rows become numbers (data/table/encoder.h)
//             samples.json             what its samples are: fields, classes, targets (data/description.h)
//             tokens.txt               of a run on a text: its vocabulary (data/vocabulary.h)
//             metrics.jsonl, tb/       track/metrics.h, for people and for TensorBoard
//             checkpoints/step-N/      track/checkpoint.h
//             logs/rank_N.log
//             trace.json               with --trace, track/trace.h
//             summary.json             when the run has ended: how, and with what result
//             evaluation.json          of a classifier, at its end: confusion matrix, some of its mistakes
//             texts.jsonl, samples.png what `echelon sample --keep` has made with it
//             histograms.jsonl         weights and their changes, at each evaluation
//             cluster.json             with several workers: where each one is, and what the links between them cost
//             control.json, journal.jsonl  what somebody asks of a live run, and what it has done of it
//             (track/control.h)
//
// A run folder appears whole (with its recipe) or not at all, under a name that nobody else has, also when two programs
// start at the same moment. Errors: DiskError, and BadInput for folders that are not what they should be.

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "track/metrics.h"
#include "world/os/disk.h"

namespace echelon {

struct RunFolder {
  std::string path;

  std::string name() const;  // the last part of the path
  std::string recipe() const { return path + "/recipe.toml"; }
  std::string table() const { return path + "/table.json"; }
  std::string samples() const { return path + "/samples.json"; }
  std::string tokens() const { return path + "/tokens.txt"; }
  std::string metrics() const { return path + "/metrics.jsonl"; }
  std::string tensorboard() const { return path + "/tb"; }
  std::string checkpoints() const { return path + "/checkpoints"; }
  std::string log(int rank) const { return fmt::format("{}/logs/rank_{}.log", path, rank); }
  std::string trace() const { return path + "/trace.json"; }
  std::string summary() const { return path + "/summary.json"; }
  std::string evaluation() const { return path + "/evaluation.json"; }
  std::string histograms() const { return path + "/histograms.jsonl"; }
  std::string cluster() const { return path + "/cluster.json"; }
  std::string control() const { return path + "/control.json"; }
  std::string journal() const { return path + "/journal.jsonl"; }
  std::string texts() const { return path + "/texts.jsonl"; }
  std::string pictures() const { return path + "/samples.png"; }
};

// A new folder `root`/STEM-N with a file in it, with the first N that is free.
std::string create_folder(Disk& disk, const std::string& root, const std::string& stem, const std::string& file,
                          const std::string& text);

// A new run `root`/STEM-N with the first N that is free.
RunFolder create_run(Disk& disk, const std::string& root, const std::string& stem, const std::string& recipe_text);

// A new run in exactly this folder, which must not exist or be empty.
RunFolder create_run_at(Disk& disk, const std::string& path, const std::string& recipe_text);

// An existing run, by its path or by its name in `root`. BadInput (with the nearest name) if there is none.
RunFolder open_run(Disk& disk, const std::string& root, const std::string& path_or_name);

// BadInput naming every file of the run that is none: links, pipes and devices anywhere in the folder
// (world/os/folder_disk.h), folders in place of files.
void expect_files(Disk& disk, const RunFolder& folder);

// Removes what saves that were cut short have left in the folder.
void remove_remains(Disk& disk, const RunFolder& folder);

struct RunInfo {
  RunFolder folder;
  std::string name;                        // its path below the folder of runs: "demo-1", "compare-1/bsp"
  std::optional<MetricPoint> first, last;  // of its metrics
  Json summary;                            // null while the run has not ended
};

RunInfo read_run(Disk& disk, const RunFolder& folder);
// "demo-1", and in a folder that is no run itself "compare-1/bsp". Hidden names are none.
std::vector<std::string> run_names(Disk& disk, const std::string& root);
// Those in `root` (of the real disk) and in its folders that hold several (of `echelon compare`, of a sweep). Oldest
// first; damaged summaries count as none, and of a run that cannot be read there is its name.
std::vector<RunInfo> list_runs(Disk& disk, const std::string& root);

void write_summary(Disk& disk, const RunFolder& folder, const Json& summary);
Json read_summary(Disk& disk, const RunFolder& folder);  // null if there is none; BadInput if it is damaged

}  // namespace echelon
