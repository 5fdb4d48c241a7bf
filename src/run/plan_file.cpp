#include "run/plan_file.h"

#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "recipe/toml.h"
#include "world/os/host.h"

namespace echelon {

namespace {

std::string plan_name_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

std::string find_plan(Disk& disk, const std::string& name_or_path) {
  if (name_or_path.ends_with(".toml")) {
    if (disk.exists(name_or_path) && !disk.is_directory(name_or_path)) return name_or_path;
    bad_input("{}: there is no such file", name_or_path);
  }
  if (name_or_path.find('/') == std::string::npos)
    for (const std::string& place : usual_plan_places())
      if (const std::string path = place + "/" + name_or_path + ".toml"; disk.exists(path)) return path;
  bad_input("there is no plan '{}'{}; write data=2,pipeline=2, name one of `echelon plan list`, or a file: PATH.toml",
            name_or_path, did_you_mean(name_or_path, plan_names(disk)));
}

}  // namespace

PlanFile parse_plan(std::string_view text, const std::string& file, Problems& problems) {
  TomlLimits limits;
  limits.bytes = most_plan_bytes;
  const Options tree = parse_toml(text, file, limits);
  OptionReader r(tree, problems);
  PlanFile plan{.path = file, .name = plan_name_of(file)};
  plan.title = r.text("title", "");
  plan.paper = r.text("paper", "");
  plan.about = r.text("about", "");
  plan.program = r.text("program", "");
  plan.deviates = r.text("deviates", "");
  plan.example = r.text("example", "recipes/demo.toml --workers 2");
  plan.plan = read_plan(r);
  return plan;
}

std::vector<std::string> usual_plan_places() {
  const std::string program = program_directory();  // build/echelon in the repository, bin/echelon when installed
  return {"recipes/plans", program + "/../recipes/plans", program + "/../share/echelon/recipes/plans"};
}

std::vector<std::string> plan_names(Disk& disk) {
  std::set<std::string> names;
  for (const std::string& place : usual_plan_places()) {
    if (!disk.is_directory(place)) continue;
    for (const std::string& file : disk.list(place))
      if (file.ends_with(".toml")) names.insert(plan_name_of(file));
  }
  return {names.begin(), names.end()};
}

PlanFile read_plan_file(Disk& disk, const std::string& name_or_path, Problems& problems) {
  const std::string path = find_plan(disk, name_or_path);
  return parse_plan(read_text(disk, path, most_plan_bytes), path, problems);
}

}  // namespace echelon
