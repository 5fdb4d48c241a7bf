#include "registry/archive.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "registry/labels.h"
#include "registry/word_planes.h"
#include "track/checkpoint.h"

namespace echelon {

namespace {

constexpr std::string_view magic = "ECHSNAP1";
constexpr std::uint64_t largest_header = 64u << 10, largest_file = std::uint64_t{1} << 36;
// Numbers that were trained hardly get smaller; what claims more is made to fill the memory.
constexpr std::uint64_t most_unpacked = 1000, smallest_bomb = 16u << 20;
constexpr int longest_chain = 64;  // differences in a row; then one is stored whole
constexpr std::string_view suffix = ".snapshot";

std::string snapshot_path(const RunFolder& folder, std::int64_t step) {
  return fmt::format("{}/step-{}{}", archive_folder(folder), step, suffix);
}

SnapshotFiles checkpoint_files(Disk& disk, const std::string& path) {
  SnapshotFiles files;
  for (const char* name : {model_file, state_file, manifest_file})
    files[name] = read_file(disk, path + "/" + name, largest_file);
  return files;
}

const std::vector<std::byte>* same_file(const SnapshotFiles* base, const std::string& name, std::size_t size) {
  if (!base) return nullptr;
  const auto it = base->find(name);
  return it != base->end() && it->second.size() == size ? &it->second : nullptr;
}

std::size_t header_length(std::span<const std::byte> packed, const std::string& where) {
  if (packed.size() < magic.size() + 4 || std::memcmp(packed.data(), magic.data(), magic.size()) != 0)
    bad_input("{}: is no archived snapshot", where);
  std::uint32_t length = 0;
  std::memcpy(&length, packed.data() + magic.size(), 4);
  if (length > largest_header || length > packed.size() - magic.size() - 4) bad_input("{}: cut short", where);
  return length;
}

std::vector<std::byte> with_header(const Json& header, std::span<const std::byte> payload) {
  const std::string text = header.dump();
  const auto length = static_cast<std::uint32_t>(text.size());
  std::vector<std::byte> all(magic.size() + 4 + text.size());
  std::memcpy(all.data(), magic.data(), magic.size());
  std::memcpy(all.data() + magic.size(), &length, 4);
  std::memcpy(all.data() + magic.size() + 4, text.data(), text.size());
  all.insert(all.end(), payload.begin(), payload.end());
  return all;
}

SnapshotFiles retrained_files(const SnapshotHeader& header, const SnapshotFiles* base, const std::string& where,
                              const Retrain& retrain) {
  if (!base) bad_input("{}: is to be trained again, but from nothing", where);
  if (!retrain)
    bad_input("{}: is trained again when it is wanted: echelon runs archive RUN --restore {}", where, header.step);
  const std::optional<SnapshotFiles> files = retrain(header.base, *base, header.step);
  if (!files) bad_input("{}: training on from step {} made no checkpoint at step {}", where, header.base, header.step);
  for (const SnapshotHeader::Entry& e : header.files) {
    const auto it = files->find(e.name);
    if (it == files->end() || sha256_hex(it->second) != e.sha256)
      bad_input(
          "{}: training on from step {} gave another {}: it needs the data, the program and the kind of processor "
          "that it was archived with",
          where, header.base, e.name);
  }
  return *files;
}

// Which of the archive's snapshots hold something themselves.
std::map<std::int64_t, bool> stored_steps(Disk& disk, const RunFolder& folder) {
  std::map<std::int64_t, bool> stored;
  for (const std::int64_t step : archived_steps(disk, folder)) {
    const std::string path = snapshot_path(folder, step);
    stored[step] = !read_snapshot_header(read_file(disk, path, largest_file), path).retrained;
  }
  return stored;
}

}  // namespace

std::string archive_folder(const RunFolder& folder) { return folder.path + "/archive"; }

std::vector<std::byte> pack_snapshot(std::int64_t step, const SnapshotFiles& files, std::int64_t base_step,
                                     const SnapshotFiles* base) {
  Json entries = Json::array();
  std::vector<std::byte> payload;
  for (const auto& [name, bytes] : files) {
    const auto* before = same_file(base, name, bytes.size());
    // Sometimes the numbers themselves have more in common than their differences.
    std::vector<std::byte> packed = pack_words(bytes, {});
    bool delta = false;
    if (before)
      if (std::vector<std::byte> difference = pack_words(bytes, *before); difference.size() < packed.size())
        packed = std::move(difference), delta = true;
    entries.push_back({{"name", name},
                       {"bytes", bytes.size()},
                       {"packed", packed.size()},
                       {"delta", delta},
                       {"sha256", sha256_hex(bytes)}});
    payload.insert(payload.end(), packed.begin(), packed.end());
  }
  return with_header({{"step", step}, {"base", base ? base_step : -1}, {"files", entries}}, payload);
}

std::vector<std::byte> pack_retrained(std::int64_t step, const SnapshotFiles& files, std::int64_t base_step) {
  Json entries = Json::array();
  for (const auto& [name, bytes] : files)
    entries.push_back(
        {{"name", name}, {"bytes", bytes.size()}, {"packed", 0}, {"delta", true}, {"sha256", sha256_hex(bytes)}});
  return with_header({{"step", step}, {"base", base_step}, {"retrained", true}, {"files", entries}}, {});
}

SnapshotHeader read_snapshot_header(std::span<const std::byte> packed, const std::string& where) {
  const std::size_t length = header_length(packed, where);
  const std::string_view text(reinterpret_cast<const char*>(packed.data()) + magic.size() + 4, length);
  SnapshotHeader header;
  try {
    const Json json = parse_json(text, where, {.depth = 4, .values = 1000});
    header.step = json.at("step").get<std::int64_t>();
    header.base = json.at("base").get<std::int64_t>();
    header.retrained = json.value("retrained", false);
    std::uint64_t rest = packed.size() - magic.size() - 4 - length;
    for (const Json& f : json.at("files")) {
      SnapshotHeader::Entry e{.name = f.at("name").get<std::string>(),
                              .bytes = f.at("bytes").get<std::uint64_t>(),
                              .packed = f.at("packed").get<std::uint64_t>(),
                              .delta = f.at("delta").get<bool>(),
                              .sha256 = f.at("sha256").get<std::string>()};
      if (e.name != model_file && e.name != state_file && e.name != manifest_file)
        bad_input("{}: holds a file '{}', which is none of a checkpoint", where, e.name);
      if (e.bytes > largest_file || e.packed > rest) bad_input("{}: cut short", where);
      rest -= e.packed;
      header.files.push_back(std::move(e));
    }
    if (rest != 0) bad_input("{}: has {} bytes too many", where, rest);
    std::uint64_t whole = 0;  // a difference is as long as what it differs from
    for (const SnapshotHeader::Entry& e : header.files) whole += e.delta ? 0 : e.bytes;
    if (whole / most_unpacked > packed.size() + smallest_bomb / most_unpacked)
      bad_input("{}: {} bytes claim to unpack to {}, which no weights do", where, packed.size(), whole);
  } catch (const Json::exception& problem) {
    bad_input("{}: its header is damaged ({})", where, problem.what());
  }
  return header;
}

SnapshotFiles unpack_snapshot(std::span<const std::byte> packed, const SnapshotFiles* base, const std::string& where,
                              const Retrain& retrain) {
  const SnapshotHeader header = read_snapshot_header(packed, where);
  if (header.retrained) return retrained_files(header, base, where, retrain);
  std::span<const std::byte> rest = packed.subspan(magic.size() + 4 + header_length(packed, where));
  SnapshotFiles files;
  for (const SnapshotHeader::Entry& e : header.files) {
    const auto* before = e.delta ? same_file(base, e.name, e.bytes) : nullptr;
    if (e.delta && !before) bad_input("{}: the snapshot it differs from is not the one it was made from", where);
    std::vector<std::byte> bytes;
    try {
      bytes = unpack_words(rest.first(e.packed),
                           before ? std::span<const std::byte>(*before) : std::span<const std::byte>(), e.bytes);
    } catch (const BadInput& problem) {
      bad_input("{}: {}: {}", where, e.name, problem.what());
    }
    if (sha256_hex(bytes) != e.sha256) bad_input("{}: {} is damaged: another SHA-256", where, e.name);
    files[e.name] = std::move(bytes);
    rest = rest.subspan(e.packed);
  }
  return files;
}

std::vector<std::int64_t> archived_steps(Disk& disk, const RunFolder& folder) {
  std::vector<std::int64_t> steps;
  if (!disk.is_directory(archive_folder(folder))) return steps;
  for (const std::string& name : disk.list(archive_folder(folder))) {
    std::string_view number = name;
    if (!number.starts_with("step-") || !number.ends_with(suffix)) continue;
    number.remove_prefix(5), number.remove_suffix(suffix.size());
    std::int64_t step = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), step);
    if (error == std::errc() && end == number.data() + number.size()) steps.push_back(step);
  }
  std::ranges::sort(steps);
  return steps;
}

SnapshotFiles read_archived(Disk& disk, const RunFolder& folder, std::int64_t step, const Retrain& retrain) {
  // Back to one that is whole, then forward again.
  std::vector<std::pair<std::string, std::vector<std::byte>>> chain;
  for (std::int64_t at = step; at >= 0;) {
    const std::string path = snapshot_path(folder, at);
    if (!disk.exists(path)) bad_input("{}: is not in the archive", path);
    chain.emplace_back(path, read_file(disk, path, largest_file));
    const std::int64_t base = read_snapshot_header(chain.back().second, path).base;
    if (base >= at || chain.size() > 10 * longest_chain) bad_input("{}: differs from a later one", path);
    at = base;
  }
  SnapshotFiles files;
  const SnapshotFiles* base = nullptr;
  for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
    files = unpack_snapshot(it->second, base, it->first, retrain);
    base = &files;
  }
  return files;
}

ArchiveResult archive_checkpoints(Disk& disk, const RunFolder& folder, const Retrain& retrain) {
  std::vector<CheckpointEntry> entries = list_checkpoints(disk, folder.checkpoints());
  std::ranges::reverse(entries);  // oldest first
  const auto best = best_valid(disk, folder.checkpoints()).found;
  std::vector<std::int64_t> needed = registered_steps(read_labels(disk, folder));
  if (!entries.empty()) needed.push_back(entries.back().step);
  std::erase_if(entries, [&](const CheckpointEntry& e) {
    return (best && best->path == e.path) || std::ranges::find(needed, e.step) != needed.end();
  });
  disk.make_directories(archive_folder(folder));
  std::map<std::int64_t, bool> there = stored_steps(disk, folder);
  std::int64_t base_step = -1;
  SnapshotFiles base;
  ArchiveResult result;
  for (const CheckpointEntry& entry : entries) {
    open_checkpoint(disk, entry.path);  // damaged ones do not become part of the archive
    SnapshotFiles files = checkpoint_files(disk, entry.path);
    const std::string path = snapshot_path(folder, entry.step);
    if (there.contains(entry.step)) {
      // The checkpoint will be removed, so the archive has to have it.
      if (read_archived(disk, folder, entry.step, retrain) != files)
        bad_input("{}: holds another checkpoint than {}: remove one of them", path, entry.path);
      continue;
    }
    // The difference to the newest one before it that is stored.
    const auto next = there.upper_bound(entry.step);
    const auto stored =
        std::find_if(std::make_reverse_iterator(next), there.rend(), [](const auto& e) { return e.second; });
    const bool whole = std::distance(there.begin(), next) % longest_chain == 0 || stored == there.rend();
    if (!whole && base_step != stored->first) base_step = stored->first, base = read_archived(disk, folder, base_step);
    const SnapshotFiles* differs_from = whole ? nullptr : &base;
    // One that follows a stored one need not be stored, if training makes it again.
    bool again = false;
    if (retrain && result.not_retrained < 0 && !whole && stored.base() == next) {
      again = retrain(base_step, base, entry.step) == files;
      if (!again) result.not_retrained = entry.step;
    }
    const std::vector<std::byte> packed = again ? pack_retrained(entry.step, files, base_step)
                                                : pack_snapshot(entry.step, files, base_step, differs_from);
    if (!again && unpack_snapshot(packed, differs_from, path) != files)
      fail("{}: did not become the same bytes again; nothing was removed", path);
    write_file_atomically(disk, path, packed);
    there[entry.step] = !again;
    if (!again) base_step = entry.step, base = std::move(files);
  }
  for (const auto& [step, stored] : there) {
    const auto packed = read_file(disk, snapshot_path(folder, step), largest_file);
    for (const auto& e : read_snapshot_header(packed, snapshot_path(folder, step)).files) {
      result.plain += e.bytes;
      if (e.name == model_file) result.weights_plain += e.bytes, result.weights_archived += e.packed;
    }
    result.archived += packed.size();
    ++result.snapshots;
    result.retrained += stored ? 0 : 1;
  }
  for (const CheckpointEntry& entry : entries) {
    disk.remove_all(entry.path);
    result.removed.push_back(entry.step);
  }
  return result;
}

std::string restore_checkpoint(Disk& disk, const RunFolder& folder, std::int64_t step, const Retrain& retrain) {
  const std::string path = fmt::format("{}/step-{}", folder.checkpoints(), step);
  if (disk.exists(path)) return path;
  const SnapshotFiles files = read_archived(disk, folder, step, retrain);
  const std::string beside = path + ".new";
  disk.remove_all(beside);
  disk.make_directories(beside);
  for (const auto& [name, bytes] : files) write_file_atomically(disk, beside + "/" + name, bytes);
  disk.rename(beside, path);
  disk.sync_directory(folder.checkpoints());
  return path;
}

}  // namespace echelon
