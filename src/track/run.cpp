#include "track/run.h"

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/text.h"
#include "track/checkpoint.h"
#include "world/os/folder_disk.h"
#include "world/os/host.h"
#include "world/os/thread_id.h"

namespace echelon {

namespace {

constexpr std::string_view staging = ".new-";  // hidden names are no runs

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::string folder_above(const std::string& path) {
  const auto slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

void make_durably(Disk& disk, const std::string& directory) {
  if (disk.is_directory(directory)) return;
  const std::string parent = folder_above(directory);
  if (parent != directory) make_durably(disk, parent);
  disk.make_directories(directory);
  disk.sync_directory(parent);
}

// Moves a folder with the recipe in it to `path`. False if a run (anything that is not empty) is there: the rename
// itself is the question, so two programs cannot both get yes.
bool claim(Disk& disk, const std::string& staged, const std::string& path) {
  try {
    disk.rename(staged, path);
  } catch (const DiskError& e) {
    if (e.error_number() == ENOTEMPTY || e.error_number() == EEXIST || e.error_number() == ENOTDIR) return false;
    throw;
  }
  disk.sync_directory(folder_above(path));
  return true;
}

std::int64_t positive_number(std::string_view digits) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  return error == std::errc() && end == digits.data() + digits.size() && n > 0 ? n : 0;
}

// A folder beside the runs that becomes one by renaming: ".new-HOST-PROCESS.THREAD". Those of processes that have died
// are removed.
std::string stage(Disk& disk, const std::string& parent, const std::string& file, const std::string& text) {
  make_durably(disk, parent);
  const std::string mine = fmt::format("{}{}-", staging, host_name());
  for (const std::string& name : disk.list(parent))
    if (name.starts_with(mine))
      if (const auto process = positive_number(split(std::string_view(name).substr(mine.size()), '.').front());
          process > 0 && !process_exists(process))
        disk.remove_all(parent + "/" + name);
  const std::string staged = fmt::format("{}/{}{}.{}", parent, mine, process_id(), thread_id());
  try {
    disk.remove_all(staged);
    disk.make_directories(staged);
    write_file_atomically(disk, staged + "/" + file, text);
  } catch (const DiskError&) {
    try {
      disk.remove_all(staged);
    } catch (const DiskError&) {
      // What there was first is what to tell.
    }
    throw;
  }
  return staged;
}

// The number N of a name STEM-N.
std::int64_t number_of(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem) || name.size() < stem.size() + 2 || name[stem.size()] != '-') return 0;
  return positive_number(name.substr(stem.size() + 1));
}

}  // namespace

std::vector<std::string> run_names(Disk& disk, const std::string& root) {
  std::vector<std::string> names;
  const auto look = [&](const std::string& below, const auto& otherwise) {
    if (!disk.is_directory(root + below)) return;
    for (const auto& name : disk.list(root + below)) {
      const std::string path = below + "/" + name;
      if (name.starts_with('.')) continue;
      if (disk.exists(RunFolder{root + path}.recipe()))
        names.push_back(path.substr(1));
      else
        otherwise(path);
    }
  };
  look("", [&](const std::string& path) { look(path, [](const std::string&) {}); });
  return names;
}

std::string RunFolder::name() const { return path.substr(path.find_last_of('/') + 1); }

std::string create_folder(Disk& disk, const std::string& root, const std::string& stem, const std::string& file,
                          const std::string& text) {
  const std::string parent = without_slashes(root), staged = stage(disk, parent, file, text);
  std::int64_t n = 0;
  for (const auto& name : disk.list(parent)) n = std::max(n, number_of(name, stem));
  for (;;) {
    const std::string path = fmt::format("{}/{}-{}", parent, stem, ++n);
    if (claim(disk, staged, path)) return path;
  }
}

RunFolder create_run(Disk& disk, const std::string& root, const std::string& stem, const std::string& recipe_text) {
  return {create_folder(disk, root, stem, "recipe.toml", recipe_text)};
}

RunFolder create_run_at(Disk& disk, const std::string& path, const std::string& recipe_text) {
  const RunFolder run{without_slashes(path)};
  if (disk.exists(run.recipe()))
    bad_input("{}: holds a run already; resume it with --resume, or name another folder with --run", run.path);
  const auto refuse = [&] { bad_input("{}: is not an empty folder; name another one with --run", run.path); };
  if (disk.exists(run.path) && (!disk.is_directory(run.path) || !disk.list(run.path).empty())) refuse();
  const std::string staged = stage(disk, folder_above(run.path), "recipe.toml", recipe_text);
  if (!claim(disk, staged, run.path)) {
    disk.remove_all(staged);
    refuse();
  }
  return run;
}

void expect_files(Disk& disk, const RunFolder& folder) {
  refuse_special_files(folder.path);
  std::string problems;
  for (const std::string& file : {folder.recipe(), folder.metrics(), folder.summary(), folder.trace(), folder.log(0)})
    if (disk.is_directory(file)) problems += fmt::format("\n  {}", file);
  if (!problems.empty()) bad_input("{}: folders in place of files:{}", folder.path, problems);
}

void remove_remains(Disk& disk, const RunFolder& folder) {
  remove_remains(disk, folder.checkpoints());
  for (const std::string& directory : {folder.path, folder.tensorboard()}) {
    if (!disk.is_directory(directory)) continue;
    for (const std::string& name : disk.list(directory))
      if (name.ends_with(".new")) disk.remove_all(directory + "/" + name);
  }
}

RunFolder open_run(Disk& disk, const std::string& root, const std::string& path_or_name) {
  const std::string wanted = without_slashes(path_or_name), parent = without_slashes(root);
  for (const auto& path : {wanted, parent.empty() ? wanted : parent + "/" + wanted})
    if (disk.exists(RunFolder{path}.recipe())) return {path};
  if (parent.empty()) bad_input("{}: there is no run here", wanted);
  const auto names = run_names(disk, parent);
  bad_input("{}: there is no run here or in {}{}{}", wanted, parent, did_you_mean(wanted, names),
            names.empty() ? " (it has none)" : "");
}

namespace {

// The first and the last whole line of a file, without reading all that is between.
std::pair<std::optional<MetricPoint>, std::optional<MetricPoint>> ends_of_metrics(Disk& disk, const std::string& path) {
  constexpr std::uint64_t piece = 64u << 10;
  if (!disk.exists(path)) return {};
  const auto file = disk.open(path);
  const std::uint64_t size = file->size();
  const auto lines_at = [&](std::uint64_t offset) {
    std::string text(std::min(piece, size - offset), '\0');
    text.resize(file->read_at(offset, std::as_writable_bytes(std::span(text))));
    return text;
  };
  std::pair<std::optional<MetricPoint>, std::optional<MetricPoint>> ends;
  const std::string begin = lines_at(0);
  std::string_view text = begin;
  for (std::size_t end; !ends.first && (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1))
    ends.first = parse_metric(text.substr(0, end));
  const std::string last = size > piece ? lines_at(size - piece) : begin;
  text = std::string_view(last).substr(0, last.find_last_of('\n') + 1);  // nothing if there is no whole line
  while (!ends.second && !text.empty()) {
    text.remove_suffix(1);
    const std::size_t before = text.find_last_of('\n');
    if (before == text.npos && size > piece) break;  // the middle of a line
    ends.second = parse_metric(text.substr(before + 1));
    text = text.substr(0, before + 1);
  }
  return ends;
}

}  // namespace

namespace {

// What is asked of a summary by name has the type that it was written with; anything else may stand beside it.
void check_summary(const Json& summary, const std::string& path) {
  if (!summary.is_object()) bad_input("{}: is no JSON object", path);
  const auto expect = [&](const Json& table, const char* key, bool (Json::*is)() const noexcept, const char* what) {
    if (table.contains(key) && !(table[key].*is)()) bad_input("{}: '{}' is not {}", path, key, what);
  };
  for (const char* key : {"steps", "workers"}) expect(summary, key, &Json::is_number_integer, "a whole number");
  expect(summary, "best", &Json::is_number, "a number");
  for (const char* key : {"stopped_by", "weights_sha256", "monitor"}) expect(summary, key, &Json::is_string, "a text");
  if (summary.contains("init") && summary["init"].is_object())
    for (const char* key : {"from", "sha256"}) expect(summary["init"], key, &Json::is_string, "a text");
}

}  // namespace

RunInfo read_run(Disk& disk, const RunFolder& folder) {
  auto [first, last] = ends_of_metrics(disk, folder.metrics());
  RunInfo info{folder, folder.name(), std::move(first), std::move(last), nullptr};
  try {
    info.summary = read_summary(disk, folder);
  } catch (const BadInput&) {
  }
  return info;
}

std::vector<RunInfo> list_runs(Disk& disk, const std::string& root) {
  const std::string parent = without_slashes(root);
  std::vector<RunInfo> runs;
  for (const auto& name : run_names(disk, parent)) {
    const RunFolder folder{parent + "/" + name};
    try {
      runs.push_back(read_run(*make_folder_disk(folder.path), folder));
    } catch (const Error&) {  // one that cannot be read does not hide the others
      runs.push_back({folder, "", {}, {}, nullptr});
    }
    runs.back().name = name;
  }
  std::ranges::stable_sort(runs, {}, [](const RunInfo& r) { return r.first ? r.first->time : 0.0; });
  return runs;
}

void write_summary(Disk& disk, const RunFolder& folder, const Json& summary) {
  write_file_atomically(disk, folder.summary(), summary.dump(1) + "\n");
}

Json read_summary(Disk& disk, const RunFolder& folder) {
  if (!disk.exists(folder.summary())) return nullptr;
  Json summary = parse_json(read_text(disk, folder.summary()), folder.summary());
  check_summary(summary, folder.summary());
  return summary;
}

}  // namespace echelon
