// `echelon plan published`: scalings that others have published, beside what the same model of costs says about them.

#include "base/error.h"
#include "base/text.h"
#include "cli/foresight/plan_rank.h"
#include "cli/report.h"
#include "cli/runs/run_table.h"
#include "foresight/published.h"
#include "foresight/scaled_cluster.h"
#include "recipe/cluster_file.h"
#include "world/os/disk.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

std::string cluster_path(Disk& disk, const std::string& name) {
  const std::string program = program_directory();
  for (const std::string& place : {std::string("recipes/clusters"), program + "/../recipes/clusters",
                                   program + "/../share/echelon/recipes/clusters"})
    if (const std::string path = place + "/" + name; disk.exists(path)) return path;
  bad_input("recipes/clusters/{} is not there: run it in the repository, or install the program", name);
}

void print_published(bool json) {
  const auto disk = make_real_disk();
  Json out = Json::array();
  TextTable table({"system", "network", "workers", "computed", "published", "step alone", "step", "sums"});
  for (const foresight::ScalingCase& c : foresight::published_scalings()) {
    const SimCluster cluster = read_cluster(*disk, cluster_path(*disk, c.cluster)).cluster;
    const foresight::Platform platform = foresight::Platform::of_cluster(foresight::scaled_cluster(cluster, c.workers));
    const foresight::Scaling s = data_parallel_scaling(c, platform);
    out.push_back({{"system", c.system},
                   {"network", c.network},
                   {"workers", c.workers},
                   {"computed", s.efficiency()},
                   {"published", c.published},
                   {"tolerance", c.tolerance},
                   {"source", c.source}});
    table.add({c.system, c.network, std::to_string(c.workers), fmt::format("{:.0f} %", 100 * s.efficiency()),
               fmt::format("{:.0f} %", 100 * c.published), human_duration(s.seconds_alone), human_duration(s.seconds),
               human_duration(s.summing)});
  }
  if (json)
    fmt::print("{}\n", out.dump());
  else
    fmt::print("{}", table.text());
}

}  // namespace

void add_plan_published(Verb plan) {
  const Verb verb = plan.add_subcommand("published", "Published scalings beside what the same costs say about them");
  auto json = std::make_shared<bool>(false);
  verb.add_flag("--json", *json, "Print JSON");
  verb.footer("Example:\n  echelon plan published");
  verb.action([json] { print_published(*json); });
}

}  // namespace echelon::cli
