#include "foresight/costs/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "world/os/cores.h"
#include "world/os/host.h"
#include "world/os/machine.h"

namespace echelon::foresight {

namespace {

constexpr int profile_version = 3;
constexpr std::size_t most_ops = 100'000, most_text = 4096;

// Reads a profile's JSON and complains about the first thing that is not as it should be.
class ProfileReader {
 public:
  explicit ProfileReader(std::string where) : where_(std::move(where)) {}

  [[noreturn]] void refuse(std::string_view what) const {
    bad_input("{}: {}; remove the file, and it is measured again", where_, what);
  }
  const Json& member(const Json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key)) refuse(fmt::format("'{}' is missing", key));
    return object.at(key);
  }
  double number(const Json& object, const char* key, double least, double most) const {
    const Json& value = member(object, key);
    if (!value.is_number()) refuse(fmt::format("'{}' is not a number", key));
    const double n = value.get<double>();
    if (!std::isfinite(n) || n < least || n > most) refuse(fmt::format("'{}' is out of range", key));
    return n;
  }
  std::string text(const Json& object, const char* key) const {
    const Json& value = member(object, key);
    if (!value.is_string()) refuse(fmt::format("'{}' is not a text", key));
    std::string s = value.get<std::string>();
    if (s.size() > most_text) refuse(fmt::format("'{}' is too long", key));
    return s;
  }
  const Json& list(const Json& object, const char* key, std::size_t most) const {
    const Json& value = member(object, key);
    if (!value.is_array() || value.size() > most) refuse(fmt::format("'{}' is not a list of at most {}", key, most));
    return value;
  }

 private:
  std::string where_;
};

struct LinkField {
  const char* name;
  double LinkCosts::*field;
};
constexpr LinkField link_fields[]{{"latency", &LinkCosts::latency},
                                  {"per_byte", &LinkCosts::per_byte},
                                  {"host_latency", &LinkCosts::host_latency},
                                  {"host_per_byte", &LinkCosts::host_per_byte},
                                  {"combine_per_byte", &LinkCosts::combine_per_byte},
                                  {"barrier", &LinkCosts::barrier},
                                  {"memory_per_byte", &LinkCosts::memory_per_byte}};

std::string profile_path(const std::string& folder) { return folder + "/profile.json"; }

}  // namespace

bool operator==(const Profile& a, const Profile& b) {
  if (a.processor != b.processor || a.cores != b.cores || !(a.ops == b.ops) || a.wires != b.wires ||
      a.links.size() != b.links.size())
    return false;
  for (const auto& [ranks, costs] : a.links) {
    const auto it = b.links.find(ranks);
    if (it == b.links.end()) return false;
    for (const LinkField& f : link_fields)
      if (costs.*f.field != it->second.*f.field) return false;
  }
  return std::ranges::equal(a.hosts, b.hosts, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.latency == y.second.latency && x.second.per_byte == y.second.per_byte;
  });
}

const PairCost* Profile::between(const std::string& a, const std::string& b) const {
  const auto it = hosts.find(std::minmax(a, b));
  return it == hosts.end() ? nullptr : &it->second;
}

std::string profile_text(const Profile& p) {
  Json json{
      {"version", profile_version}, {"processor", p.processor},
      {"cores", p.cores},           {"roofline", {{"flops", p.ops.roofline.flops}, {"bytes", p.ops.roofline.bytes}}},
      {"ops", Json::array()},       {"links", Json::array()},
      {"hosts", Json::array()}};
  for (const auto& [family, shapes] : p.ops.families())
    for (const auto& [text, cost] : shapes)
      json["ops"].push_back({{"op", family},
                             {"shapes", text},
                             {"alone", cost.seconds.alone},
                             {"together", cost.seconds.together},
                             {"flops", cost.flops},
                             {"bytes", cost.bytes}});
  for (const auto& [ranks, costs] : p.links) {
    Json link{{"ranks", ranks}};
    for (const LinkField& f : link_fields) link[f.name] = costs.*f.field;
    if (const auto wire = p.wires.find(ranks); wire != p.wires.end())
      link["wire"] = {{"quickest", wire->second.quickest}, {"usual", wire->second.usual}};
    json["links"].push_back(std::move(link));
  }
  for (const auto& [pair, cost] : p.hosts)
    json["hosts"].push_back(
        {{"a", pair.first}, {"b", pair.second}, {"latency", cost.latency}, {"per_byte", cost.per_byte}});
  return json.dump() + "\n";
}

Profile parse_profile(std::string_view text, const std::string& where) {
  const ProfileReader r(where);
  const Json json = parse_json(text, where, {.depth = 6, .values = 1'000'000});
  if (r.number(json, "version", 0, 1e6) != profile_version) r.refuse("it is of another version");
  Profile p;
  p.processor = r.text(json, "processor");
  p.cores = static_cast<int>(r.number(json, "cores", 1, 65536));
  const Json& roofline = r.member(json, "roofline");
  p.ops.roofline = {r.number(roofline, "flops", 1, 1e18), r.number(roofline, "bytes", 1, 1e18)};
  for (const Json& op : r.list(json, "ops", most_ops)) {
    const std::string family = r.text(op, "op"), shapes = r.text(op, "shapes");
    if (const auto it = p.ops.families().find(family); it != p.ops.families().end() && it->second.contains(shapes))
      r.refuse(fmt::format("'{} {}' is there twice", family, shapes));
    p.ops.set(family, shapes,
              {.seconds = {r.number(op, "alone", 0, 1e6), r.number(op, "together", 0, 1e6)},
               .flops = r.number(op, "flops", 0, 1e30),
               .bytes = r.number(op, "bytes", 0, 1e30)});
  }
  for (const Json& link : r.list(json, "links", 4096)) {
    const int ranks = static_cast<int>(r.number(link, "ranks", 1, 65536));
    LinkCosts costs;
    for (const LinkField& f : link_fields) costs.*f.field = r.number(link, f.name, 0, 1e6);
    if (link.contains("wire"))
      p.wires[ranks] = {r.number(link.at("wire"), "quickest", 0, 1e6), r.number(link.at("wire"), "usual", 0, 1e6)};
    if (!p.links.emplace(ranks, costs).second) r.refuse(fmt::format("links of {} ranks are there twice", ranks));
  }
  for (const Json& pair : r.list(json, "hosts", 1 << 20))
    p.hosts[std::minmax(r.text(pair, "a"), r.text(pair, "b"))] = {r.number(pair, "latency", 0, 1e6),
                                                                  r.number(pair, "per_byte", 0, 1e6)};
  return p;
}

std::string usual_folder() {
  std::string root = environment("XDG_CACHE_HOME");
  if (const std::string home = environment("HOME"); root.empty() && !home.empty()) root = home + "/.cache";
  return root.empty() ? "" : root + "/echelon/foresight";
}

Profile empty_profile() {
  Profile p;
  p.processor = look_at_machine().cpu;
  p.cores = available_cores();
  return p;
}

Profile load_profile(Disk& disk, const std::string& folder, std::string& note) {
  Profile here = empty_profile();
  if (folder.empty() || !disk.exists(profile_path(folder))) return here;
  try {
    const std::string path = profile_path(folder);
    Profile kept = parse_profile(read_text(disk, path, most_profile_bytes), path);
    if (kept.processor == here.processor && kept.cores == here.cores) return kept;
    note = fmt::format("{} is of another machine ({}, {} cores): measuring this one", path, kept.processor, kept.cores);
  } catch (const Error& problem) {
    note = problem.what();
  }
  return here;
}

void save_profile(Disk& disk, const std::string& folder, const Profile& profile) {
  if (folder.empty()) return;
  disk.make_directories(folder);
  write_file_atomically(disk, profile_path(folder), profile_text(profile));
}

}  // namespace echelon::foresight
