#pragma once
// What people say about a run: tags, a note, a star, and which version of which model it is. They are in labels.json in
// the run's folder, so that the registry can be rebuilt from the folders at any time. Written whole or not at all.

#include <string>
#include <vector>

#include "base/json.h"
#include "track/run.h"

namespace echelon {

struct ModelVersion {
  std::string model;
  std::int64_t version = 0;
  std::string stage = "none";  // one of model_stages
  std::int64_t step = 0;       // of the checkpoint
};

inline constexpr const char* model_stages[]{"none", "staging", "production", "archived"};

struct Labels {
  std::vector<std::string> tags;  // sorted, each once
  std::string note;
  bool star = false;
  std::vector<ModelVersion> versions;
};

std::string labels_path(const RunFolder& folder);
Labels read_labels(Disk& disk, const RunFolder& folder);  // none if there is no file; BadInput if it is damaged
// Also tells the checkpoints which of them registered models need (track/checkpoint.h, keep_checkpoints).
void write_labels(Disk& disk, const RunFolder& folder, const Labels& labels);

std::vector<std::int64_t> registered_steps(const Labels& labels);  // of checkpoints that must not be removed
Json to_json(const Labels& labels);

// BadInput if a tag, a note, a model's name or a stage is not one: too long, or with characters that are none.
void check_tag(const std::string& tag);
void check_note(const std::string& note);
void check_model_name(const std::string& name);
void check_stage(const std::string& stage);

// Adds and removes tags.
void change_tags(Labels& labels, const std::vector<std::string>& add, const std::vector<std::string>& remove);

}  // namespace echelon
