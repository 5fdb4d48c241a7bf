#include "track/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/text.h"
#include "track/weights_hash.h"

namespace echelon {

namespace {

constexpr std::string_view prefix = "step-", kept_file = "kept";
constexpr std::uint64_t manifest_limit = 16u << 20;

std::string parent_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string folder(const std::string& parent, std::int64_t step) {
  return fmt::format("{}/{}{}", parent, prefix, step);
}

// The step of a name such as "step-120" or, with `suffix` ".old", "step-120.old".
std::optional<std::int64_t> step_of(std::string_view name, std::string_view suffix = "") {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  const auto digits = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && step >= 0 && fmt::format("{}", step) == digits ? std::optional(step) : std::nullopt;
}

Manifest read_manifest(Disk& disk, const std::string& path) {
  const std::string file = path + "/" + manifest_file;
  if (!disk.exists(file)) bad_input("{}: {} is missing: the checkpoint is not complete", path, manifest_file);
  return parse_manifest(read_text(disk, file, manifest_limit), file);
}

void verify_file(Disk& disk, const std::string& path, const Manifest& manifest, const char* name) {
  const auto expected = manifest.files.find(name);
  if (expected == manifest.files.end()) bad_input("{}/{}: does not list {}", path, manifest_file, name);
  const std::string file = path + "/" + name;
  if (!disk.exists(file)) bad_input("{}: is missing", file);
  const FileDigest found = digest_of(disk, file);
  if (found.bytes != expected->second.bytes)
    bad_input("{}: expected {} bytes, found {}", file, expected->second.bytes, found.bytes);
  if (found.sha256 != expected->second.sha256)
    bad_input("{}: expected SHA-256 {}, found {}: its bytes were changed", file, expected->second.sha256, found.sha256);
}

// Puts `beside` where `path` is or will be. A directory cannot be replaced in one step: the one that is there steps
// aside as .old, which readers look for too.
void publish(Disk& disk, const std::string& beside, const std::string& path) {
  const std::string aside = path + ".old";
  const bool replaces = disk.exists(path);
  if (replaces) {
    disk.remove_all(aside);
    disk.rename(path, aside);
  }
  disk.rename(beside, path);
  disk.sync_directory(parent_of(path));
  if (replaces) disk.remove_all(aside);
}

}  // namespace

SavedCheckpoint write_checkpoint(Disk& disk, const std::string& parent, const TrainingPosition& position,
                                 std::span<const TensorView> weights, std::span<const TensorView> state,
                                 const std::function<void()>& before_publishing) {
  const std::string path = folder(parent, position.step), beside = path + ".new";
  if (!disk.exists(parent)) {
    disk.make_directories(parent);
    disk.sync_directory(parent_of(parent));
  }
  disk.remove_all(beside);
  disk.make_directories(beside);
  Manifest manifest{.position = position, .weights_sha256 = weights_hash(weights), .files = {}};
  manifest.files[model_file] = write_safetensors(disk, beside + "/" + model_file, weights, {{"format", "pt"}});
  manifest.files[state_file] = write_safetensors(disk, beside + "/" + state_file, state);
  HashedWriter last(disk, beside + "/" + manifest_file);
  last.append(to_text(manifest));
  last.finish();
  disk.sync_directory(beside);
  if (before_publishing) before_publishing();
  publish(disk, beside, path);
  return {path, manifest};
}

Checkpoint open_checkpoint(Disk& disk, const std::string& path) {
  if (!disk.is_directory(path)) bad_input("{}: there is no checkpoint", path);
  Manifest manifest = read_manifest(disk, path);
  const std::string_view name = std::string_view(path).substr(path.find_last_of('/') + 1);
  for (const char* suffix : {"", ".old"})
    if (const auto step = step_of(name, suffix); step && *step != manifest.position.step)
      bad_input("{}: its manifest is that of step {}", path, manifest.position.step);
  for (const char* file : {model_file, state_file}) verify_file(disk, path, manifest, file);
  Checkpoint checkpoint{path, std::move(manifest), SafetensorsFile(disk, path + "/" + model_file),
                        SafetensorsFile(disk, path + "/" + state_file)};
  if (const std::string hash = weights_hash(checkpoint.weights); hash != checkpoint.manifest.weights_sha256)
    bad_input("{}: its manifest says that the weights have the hash {}, but it is {}", path,
              checkpoint.manifest.weights_sha256, hash);
  return checkpoint;
}

std::vector<CheckpointEntry> list_checkpoints(Disk& disk, const std::string& parent) {
  std::vector<CheckpointEntry> entries;
  if (!disk.is_directory(parent)) return entries;
  for (const std::string& name : disk.list(parent))
    for (const char* suffix : {"", ".old"})
      if (const auto step = step_of(name, suffix)) entries.push_back({*step, parent + "/" + name});
  // Of the same step, the one that stepped aside comes second.
  std::ranges::sort(entries, [](const auto& a, const auto& b) {
    return std::pair(-a.step, std::string_view(a.path)) < std::pair(-b.step, std::string_view(b.path));
  });
  return entries;
}

namespace {

CheckpointSearch first_valid(Disk& disk, const std::vector<CheckpointEntry>& entries) {
  CheckpointSearch search;
  for (const auto& entry : entries) {
    try {
      search.found = open_checkpoint(disk, entry.path);
      return search;
    } catch (const Error& e) {
      search.skipped.push_back(e.what());
    }
  }
  return search;
}

// Greater is better: the score, then the loss, then the earlier step. Without a score: the later step.
struct Merit {
  bool scored = false;
  double score = 0, minus_loss = 0;
  std::int64_t order = 0;
  auto operator<=>(const Merit&) const = default;
};

Merit merit_of(const TrainingPosition& p) {
  if (p.score) return {true, *p.score, -p.loss.value_or(std::numeric_limits<double>::infinity()), -p.step};
  return {.order = p.step};
}

Merit merit_of(Disk& disk, const CheckpointEntry& entry) {
  try {
    return merit_of(read_manifest(disk, entry.path).position);
  } catch (const BadInput&) {  // but a disk that fails must not make the best one look worthless
    return {.order = entry.step};
  }
}

}  // namespace

CheckpointSearch latest_valid(Disk& disk, const std::string& parent) {
  return first_valid(disk, list_checkpoints(disk, parent));
}

CheckpointSearch best_valid(Disk& disk, const std::string& parent) {
  std::vector<std::pair<Merit, CheckpointEntry>> ranked;
  std::vector<std::string> unreadable;  // any of them may be the best
  for (auto& entry : list_checkpoints(disk, parent)) {
    try {
      ranked.emplace_back(merit_of(read_manifest(disk, entry.path).position), entry);
    } catch (const BadInput& e) {
      unreadable.push_back(e.what());
    }
  }
  std::ranges::stable_sort(ranked, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<CheckpointEntry> entries;
  for (auto& [merit, entry] : ranked) entries.push_back(entry);
  CheckpointSearch search = first_valid(disk, entries);
  search.skipped.insert(search.skipped.begin(), unreadable.begin(), unreadable.end());
  return search;
}

void remove_remains(Disk& disk, const std::string& parent) {
  if (!disk.is_directory(parent)) return;
  for (const std::string& name : disk.list(parent)) {
    const std::string path = parent + "/" + name;
    if (step_of(name, ".new") || step_of(name, ".gone")) disk.remove_all(path);
    if (const auto step = step_of(name, ".old")) {
      if (disk.exists(folder(parent, *step)))
        disk.remove_all(path);
      else
        disk.rename(path, folder(parent, *step));
    }
  }
}

void keep_checkpoints(Disk& disk, const std::string& parent, const std::vector<std::int64_t>& steps) {
  const std::string path = fmt::format("{}/{}", parent, kept_file);
  if (!disk.is_directory(parent) || (steps.empty() && !disk.exists(path))) return;
  std::string text;
  for (const std::int64_t step : steps) text += fmt::format("{}\n", step);
  write_file_atomically(disk, path, text);
}

std::vector<std::int64_t> kept_checkpoints(Disk& disk, const std::string& parent) {
  const std::string path = fmt::format("{}/{}", parent, kept_file);
  std::vector<std::int64_t> steps;
  if (!disk.exists(path)) return steps;
  for (const std::string_view line : split(read_text(disk, path, 1u << 20), '\n')) {
    std::int64_t step = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), step);
    if (error == std::errc() && end == line.data() + line.size()) steps.push_back(step);
  }
  return steps;
}

void prune_checkpoints(Disk& disk, const std::string& parent, std::int64_t current_step, int keep_last,
                       bool keep_best) {
  remove_remains(disk, parent);
  const auto entries = list_checkpoints(disk, parent);
  const CheckpointEntry* best = nullptr;
  Merit best_merit;
  if (keep_best)
    for (const auto& entry : entries)
      if (const Merit merit = merit_of(disk, entry); merit.scored && merit > best_merit)
        best = &entry, best_merit = merit;
  const std::vector<std::int64_t> needed = kept_checkpoints(disk, parent);
  int kept = 0;
  for (const auto& entry : entries) {
    if (entry.step > current_step) continue;  // left by a run that was resumed from further back: will be overwritten
    if (kept++ < std::max(1, keep_last) || &entry == best || std::ranges::find(needed, entry.step) != needed.end())
      continue;
    // Renamed first, so that what a crash leaves of it does not look like a damaged checkpoint.
    disk.rename(entry.path, entry.path + ".gone");
    disk.remove_all(entry.path + ".gone");
  }
}

}  // namespace echelon
