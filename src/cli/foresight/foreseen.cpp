#include "cli/foresight/foreseen.h"

#include <algorithm>

#include "base/error.h"
#include "cli/training/experiment_flags.h"
#include "foresight/costs/measure.h"
#include "foresight/scaled_cluster.h"
#include "recipe/cluster_file.h"
#include "recipe/prepare_elsewhere.h"

namespace echelon::cli {

void add_foresight_flags(Verb verb, ForesightFlags& f) {
  verb.add_option("--workers", f.workers, "Workers (default: as many as the cluster has, or 1)").range(1, 100000);
  verb.add_option(
      "--cluster", f.cluster,
      "The file that describes machines and links (docs/simulation.md), repeated for more workers; default: "
      "this machine");
  verb.add_text(
      "--link",
      [&f](const std::string& text) {
        f.link = read_link(text);
        f.link_text = text;
      },
      "This machine with links of that speed: 100mbit or 100mbit,1ms");
  verb.add_option(
          "--hosts", f.hosts,
          "On hosts like this one, by name, with the links that a run over them has measured: a,b,c; workers are "
          "dealt out in order")
      .separated_by(',');
  verb.add_option("--memory", f.memory, "What a worker may allocate: 2GiB");
  verb.add_option("--set", f.overrides, "Change one setting of the recipe first").one_each_time();
  verb.add_flag("--measure", f.measure_again, "Measure operations and links again, whatever is known");
}

Foreseen::Foreseen(const ForesightFlags& flags) : flags_(flags), folder_(foresight::usual_folder()) {
  if (!flags.cluster.empty()) {
    if (!flags.link_text.empty())
      bad_input("{} says how fast its links are: leave out --link {}, or change the file", flags.cluster,
                flags.link_text);
    cluster_ = read_cluster(*disk_, flags.cluster).cluster;
  }
  if (!flags.hosts.empty() && (cluster_ || !flags.link_text.empty()))
    bad_input("--hosts has links as they were measured: leave out --{}", cluster_ ? "cluster" : "link");
  workers_ = flags.workers == 0 && !flags.hosts.empty() ? static_cast<int>(flags.hosts.size())
             : flags.workers > 0                        ? flags.workers
             : cluster_                                 ? cluster_->ranks()
                                                        : 1;
  profile_ = foresight::load_profile(*disk_, folder_, note_);
  for (std::size_t a = 0; a < flags.hosts.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (flags.hosts[a] == flags.hosts[b])
        bad_input("--hosts: {} is there twice", flags.hosts[a]);
      else if (!profile_.between(flags.hosts[a], flags.hosts[b]))
        bad_input("--hosts: what messages between {} and {} cost is not known here; a run over both measures it",
                  flags.hosts[b], flags.hosts[a]);
  if (!cluster_) outcomes_ = foresight::load_outcomes(*disk_, folder_);
}

void Foreseen::measure(const PreparedRun& prepared, int workers) {
  if (cluster_) return;
  if (flags_.measure_again) {
    foresight::Profile fresh = foresight::empty_profile();
    fresh.hosts = profile_.hosts;
    profile_ = fresh;
  }
  const bool unknown = !foresight::is_measured(prepared, profile_);
  if (unknown) fmt::print(stderr, "measuring the operations of {} on this machine, once\n", prepared.recipe.path);
  bool changed = foresight::measure_recipe(prepared, profile_);
  changed = foresight::measure_links(ranks_on_a_host(workers), profile_) || changed;
  if (!changed) return;
  try {
    foresight::save_profile(*disk_, folder_, profile_);
  } catch (const DiskError& problem) {
    fmt::print(stderr, "what was measured is not kept: {}\n", problem.what());
  }
}

int Foreseen::ranks_on_a_host(int workers) const {
  const int hosts = std::max(1, static_cast<int>(flags_.hosts.size()));
  return (workers + hosts - 1) / hosts;
}

PreparedRun Foreseen::prepare(const std::vector<std::string>& overrides) const {
  Problems problems;
  PreparedRun prepared = cluster_ ? prepare_for_elsewhere(*disk_, flags_.recipe, overrides, problems)
                                  : prepare_run(*disk_, flags_.recipe, overrides, problems);
  problems.throw_if_any(flags_.recipe);
  return prepared;
}

foresight::Platform Foreseen::platform(int workers) const {
  if (cluster_) return foresight::Platform::of_cluster(foresight::scaled_cluster(*cluster_, workers));
  if (!flags_.hosts.empty()) {
    std::vector<std::string> of_ranks;
    for (int r = 0; r < workers; ++r)
      of_ranks.push_back(flags_.hosts[static_cast<std::size_t>(r / ranks_on_a_host(workers))]);
    const auto links = profile_.links.find(ranks_on_a_host(workers));
    return foresight::Platform::on_network(profile_, of_ranks,
                                           links == profile_.links.end() ? LinkCosts{} : links->second);
  }
  return foresight::Platform::this_machine(profile_, workers, flags_.link);
}

}  // namespace echelon::cli
