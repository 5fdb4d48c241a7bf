#include "recipe/system_file.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "parallel/axes.h"
#include "recipe/toml.h"
#include "world/os/host.h"

namespace echelon {

namespace {

std::string stem_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

std::string required_text(OptionReader& r, const char* key, std::string_view why) {
  r.require(key, why);
  return r.text(key, "");
}

SystemFile::Taxonomy read_taxonomy(OptionReader r) {
  SystemFile::Taxonomy t;
  const char* why = "docs/systems.md says what stands in each column";
  t.parallelism = required_text(r, "parallelism", why);
  t.centralised = required_text(r, "centralised", why);
  t.scheduling = required_text(r, "scheduling", why);
  t.exchange = required_text(r, "exchange", why);
  t.topology = required_text(r, "topology", why);
  t.encoding = required_text(r, "encoding", why);
  r.done();
  return t;
}

void read_surveys(OptionReader& r, SystemFile& s) {
  s.row = r.text("row", "");
  for (const std::int64_t number : r.integers("surveys", {})) {
    if (number < 0 || number >= std::ssize(survey_names()))
      r.problem("surveys",
                fmt::format("has {}, and surveys are numbered from 0 to {}", number, std::ssize(survey_names()) - 1));
    else
      s.surveys.push_back(static_cast<int>(number));
  }
  if (s.row.empty() != s.surveys.empty())
    r.problem("row", "and surveys belong together: write both, or leave out both");
}

Options read_local(OptionReader r) {
  check_part(composition_axis("local"), r);
  for (const auto& [key, value] : r.options().items)
    if (!std::holds_alternative<Option::Table>(value.value))
      r.problem(key, fmt::format("must be a table of a recipe: write [local.{}]", key));
  return r.options();
}

}  // namespace

std::vector<std::pair<std::string, const Options*>> axes(const SystemFile& s) {
  return {{"rule", &s.rule}, {"exchange", &s.exchange}, {"when", &s.when},
          {"sync", &s.sync}, {"codec", &s.codec},       {"order", &s.order}};
}

const std::vector<std::string>& survey_names() {
  static const std::vector<std::string> names{
      "Mayer, Jacobsen: Scalable Deep Learning on Distributed Infrastructures",
      "Langer et al.: Distributed Training of Deep Learning Models, a Taxonomic Perspective",
      "Verbraeken et al.: A Survey on Distributed Machine Learning",
      "Ben-Nun, Hoefler: Demystifying Parallel and Distributed Deep Learning",
      "Shaikhislamov et al.: Survey on Software Tools that Implement Deep Learning Algorithms"};
  return names;
}

SystemFile parse_system(std::string_view text, const std::string& file, Problems& problems) {
  TomlLimits limits;
  limits.bytes = most_system_bytes;
  const Options tree = parse_toml(text, file, limits);
  OptionReader r(tree, problems);
  SystemFile s;
  s.path = file;
  s.name = stem_of(file);
  s.title = required_text(r, "title", "what people call it");
  s.paper = required_text(r, "paper", "the paper's name for it, with authors and year");
  s.section = r.text("section", "");
  s.about = required_text(r, "about", "what it is, in three sentences");
  s.worker = required_text(r, "worker", "what a worker does, as pseudo-code");
  s.server = r.text("server", "");
  s.deviates = r.text("deviates", "");
  if (r.has("deviates") && s.deviates.find_first_not_of(" \n") == std::string::npos)
    r.problem("deviates", "is empty: say what the published system does and this one does not, or leave it out");
  read_surveys(r, s);
  s.epochs = static_cast<int>(r.integer("epochs", 0, 0, 1'000'000));
  s.use_when = required_text(r, "use_when", "when it is a good choice");
  s.avoid_when = required_text(r, "avoid_when", "when it is not");
  r.require("taxonomy", "write [taxonomy] and the columns of `echelon systems` below it");
  s.taxonomy = read_taxonomy(r.table("taxonomy"));
  r.require("rule", "write [rule] and name = \"grad_mean\", for example");
  r.require("exchange", "write [exchange] and name = \"all_reduce\", for example");
  for (const auto& [axis, table] :
       {std::pair("rule", &s.rule), std::pair("exchange", &s.exchange), std::pair("when", &s.when),
        std::pair("sync", &s.sync), std::pair("codec", &s.codec), std::pair("order", &s.order)}) {
    r.ignore(axis);  // it is known, also where it is left out
    if (!r.has(axis)) continue;
    OptionReader part = r.table(axis);
    check_part(composition_axis(axis), part);
    *table = part.options();
  }
  r.ignore("local");
  if (r.has("local")) s.local = read_local(r.table("local"));
  if (r.has("with")) {
    r.problem("with", "is now local: write [local.optim] for [with.optim]");
    r.ignore("with");
  }
  r.done();
  return s;
}

SystemPlaces usual_system_places() {
  const std::string program = program_directory();  // build/echelon in the repository, bin/echelon when installed
  return {"recipes/systems", program + "/../recipes/systems", program + "/../share/echelon/recipes/systems"};
}

std::vector<std::string> system_names(Disk& disk, const SystemPlaces& places) {
  std::set<std::string> names;
  for (const std::string& place : places) {
    if (!disk.is_directory(place)) continue;
    for (const std::string& file : disk.list(place))
      if (file.ends_with(".toml")) names.insert(stem_of(file));
  }
  return {names.begin(), names.end()};
}

std::string find_system(Disk& disk, const std::string& name_or_path, const SystemPlaces& places) {
  if (name_or_path.ends_with(".toml")) {
    if (!disk.exists(name_or_path) || disk.is_directory(name_or_path))
      bad_input("{}: there is no such system file", name_or_path);
    return name_or_path;
  }
  if (name_or_path.find('/') == std::string::npos)
    for (const std::string& place : places)
      if (const std::string path = place + "/" + name_or_path + ".toml"; disk.exists(path)) return path;
  const std::vector<std::string> names = system_names(disk, places);
  if (names.empty()) bad_input("no systems were found in recipes/systems; name a file: --system PATH.toml");
  bad_input("there is no system '{}'{} (`echelon systems` lists them; or name a file: --system PATH.toml)",
            name_or_path, did_you_mean(name_or_path, names));
}

SystemFile read_system(Disk& disk, const std::string& name_or_path, const SystemPlaces& places) {
  const std::string path = find_system(disk, name_or_path, places);
  Problems problems;
  SystemFile system = parse_system(read_text(disk, path, most_system_bytes), path, problems);
  problems.throw_if_any(path);
  return system;
}

}  // namespace echelon
