#include "registry/labels.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/text.h"
#include "track/checkpoint.h"

namespace echelon {

namespace {

constexpr std::size_t longest_tag = 64, longest_note = 10'000, most_tags = 100;
constexpr std::uint64_t longest_labels = 1u << 20;

// Control characters would be obeyed by a terminal that shows the text: those below the blank, and those from U+0080 to
// U+009F, which are 0xc2 and another byte in UTF-8.
std::size_t control_at(std::string_view text, std::string_view allowed = "") {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 || c == 0x7f) && allowed.find(text[i]) == std::string_view::npos) return i;
    if (c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) return i;
  }
  return std::string_view::npos;
}

// As it can be shown: question marks instead of control characters.
std::string shown(std::string text, std::string_view allowed = "") {
  for (std::size_t at; (at = control_at(text, allowed)) != std::string::npos;)
    text.replace(at, static_cast<unsigned char>(text[at]) == 0xc2 ? 2 : 1, "?");
  return text;
}

constexpr std::string_view in_notes = "\n\t";

void check_word(const std::string& word, const char* what) {
  if (word.empty() || word.size() > longest_tag || control_at(word) != std::string::npos ||
      word.find(',') != std::string::npos)
    bad_input("'{}' is no {}: one to {} characters without commas, line ends and control characters", shown(word), what,
              longest_tag);
}

}  // namespace

void check_tag(const std::string& tag) { check_word(tag, "tag"); }

void check_model_name(const std::string& name) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; };
  if (name.empty() || name.size() > longest_tag || !std::isalnum(static_cast<unsigned char>(name[0])) ||
      !std::ranges::all_of(name, allowed))
    bad_input(
        "'{}' is no name of a model: one to {} of a-z, A-Z, 0-9, '.', '_' and '-', and none of the last three first",
        name, longest_tag);
}

std::vector<std::int64_t> registered_steps(const Labels& labels) {
  std::vector<std::int64_t> steps;
  for (const ModelVersion& v : labels.versions) steps.push_back(v.step);
  return steps;
}

void check_note(const std::string& note) {
  if (note.size() > longest_note) bad_input("a note has at most {} characters, this one {}", longest_note, note.size());
  if (const std::size_t at = control_at(note, in_notes); at != std::string::npos)
    bad_input("a note has no control characters but line ends and tabs; byte {} of this one begins one", at);
}

void check_stage(const std::string& stage) {
  const std::vector<std::string> all(std::begin(model_stages), std::end(model_stages));
  if (std::ranges::find(all, stage) == all.end())
    bad_input("'{}' is no stage{}: none, staging, production or archived", stage, did_you_mean(stage, all));
}

void change_tags(Labels& labels, const std::vector<std::string>& add, const std::vector<std::string>& remove) {
  for (const std::string& tag : add) {
    check_tag(tag);
    labels.tags.push_back(tag);
  }
  std::ranges::sort(labels.tags);
  labels.tags.erase(std::ranges::unique(labels.tags).begin(), labels.tags.end());
  for (const std::string& tag : remove) std::erase(labels.tags, tag);
  if (labels.tags.size() > most_tags) bad_input("a run has at most {} tags", most_tags);
}

std::string labels_path(const RunFolder& folder) { return folder.path + "/labels.json"; }

Json to_json(const Labels& labels) {
  Json versions = Json::array();
  for (const ModelVersion& v : labels.versions)
    versions.push_back({{"model", v.model}, {"version", v.version}, {"stage", v.stage}, {"step", v.step}});
  return {{"tags", labels.tags}, {"note", labels.note}, {"star", labels.star}, {"versions", versions}};
}

Labels read_labels(Disk& disk, const RunFolder& folder) {
  const std::string path = labels_path(folder);
  Labels labels;
  if (!disk.exists(path)) return labels;
  try {
    const Json json = parse_json(read_text(disk, path, longest_labels), path);
    change_tags(labels, json.at("tags").get<std::vector<std::string>>(), {});
    labels.note = shown(json.at("note").get<std::string>(), in_notes);  // once written by an older program
    check_note(labels.note);
    labels.star = json.at("star").get<bool>();
    for (const Json& v : json.at("versions")) {
      labels.versions.push_back({.model = v.at("model").get<std::string>(),
                                 .version = v.at("version").get<std::int64_t>(),
                                 .stage = v.at("stage").get<std::string>(),
                                 .step = v.at("step").get<std::int64_t>()});
      check_word(labels.versions.back().model, "name of a model");
      check_stage(labels.versions.back().stage);
    }
  } catch (const Json::exception& problem) {
    bad_input("{}: damaged ({}). Remove it; the run itself is not touched by that", path, problem.what());
  }
  return labels;
}

void write_labels(Disk& disk, const RunFolder& folder, const Labels& labels) {
  // First what keeps the checkpoints: a version without one would be worse than a checkpoint too many.
  keep_checkpoints(disk, folder.checkpoints(), registered_steps(labels));
  write_file_atomically(disk, labels_path(folder),
                        to_json(labels).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace echelon
