#pragma once
// All runs below a folder of runs, in runs/registry.db (SQLite): what can be asked about them without reading their
// folders. The folders have the truth; registry/index.h brings the file up to date by comparing
// stamps, and rebuilding it from nothing gives the same answers.
//
// Safe for many processes. One thread at a time. Failure if the file cannot be used.

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "registry/database.h"
#include "registry/labels.h"
#include "registry/query.h"
#include "track/run.h"

namespace echelon {

using RunValue = std::variant<double, std::string>;

struct CheckpointRecord {
  std::int64_t step = 0;
  std::string weights_sha256;
  std::optional<double> score;
};

// What the registry keeps of a run.
struct RunRecord {
  std::string name;                        // its path below the folder of runs: "demo-1", "compare-1/bsp"
  std::string stamp;                       // of the files it was read from
  std::map<std::string, RunValue> values;  // settings ("optim.lr"), results ("test_accuracy"), model, state, started
  Labels labels;
  std::vector<CheckpointRecord> checkpoints;
  std::string warning = "";  // what of it could not be read; not kept
};

struct RegisteredVersion {
  ModelVersion version;
  std::string run;
};

class Registry {
 public:
  static constexpr const char* file_name = "registry.db";
  explicit Registry(const std::string& root);  // the folder of runs, which must exist

  void clear();
  void put(const RunRecord& record);
  void remove(const std::string& name);
  void in_transaction(const std::function<void()>& f) { database_.in_transaction(f); }

  std::map<std::string, std::string> stamps();  // by name
  std::vector<std::string> keys();              // every name that some run has a value of
  std::vector<std::string> names_of_runs();
  RunRecord get(const std::string& name);  // BadInput if there is none
  // The runs that fit, in the order asked for, else oldest first. BadInput if the question names something that no run
  // has, with the nearest name that some have.
  std::vector<RunRecord> find(const std::string& question);

  std::vector<RegisteredVersion> versions(const std::string& model = "");  // all, or those of one model
  std::int64_t highest_version(const std::string& model);                  // 0 if there is none
  // The runs whose weights (at the end or in a checkpoint) have this hash.
  std::vector<std::string> with_weights(const std::string& sha256);

 private:
  RunRecord record_of(std::int64_t id, const std::string& name, const std::string& stamp);
  Database database_;
};

Json to_json(const RunRecord& record);

}  // namespace echelon
