#pragma once
// What the verbs of foresight share: a recipe that is prepared, what is known about this machine, and the platform on
// which ranks would run.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "foresight/costs/platform.h"
#include "foresight/costs/profile.h"
#include "foresight/outcomes.h"
#include "recipe/prepare.h"
#include "world/os/disk.h"
#include "world/wrappers/metered.h"

namespace echelon::cli {

struct ForesightFlags {
  std::string recipe, cluster, link_text, memory;
  std::vector<std::string> overrides, hosts;
  int workers = 0;  // 0: as many as the cluster has, or one
  LinkLimit link;
  bool measure_again = false;
};

void add_foresight_flags(Verb verb, ForesightFlags& flags);

// The profile, outcomes and cluster stay where they are while platforms and prepared runs of it are in use.
class Foreseen {
 public:
  // Reads the cluster and the profile. BadInput if a file cannot be read or the flags contradict each other.
  explicit Foreseen(const ForesightFlags& flags);

  int workers() const { return workers_; }
  bool here() const { return !cluster_; }
  const std::string& note() const { return note_; }  // about the profile; may be empty
  const foresight::Profile& profile() const { return profile_; }
  const std::vector<foresight::Outcome>& outcomes() const { return outcomes_; }
  // Measures what the profile does not know yet of this recipe and of links between so many workers, and keeps it; says
  // so on stderr. Nothing for a cluster.
  void measure(const PreparedRun& prepared, int workers);
  foresight::Platform platform(int workers) const;
  // The recipe with these overrides: for this machine, or for the cluster. BadInput if there is anything wrong with it.
  PreparedRun prepare(const std::vector<std::string>& overrides) const;

 private:
  int ranks_on_a_host(int workers) const;
  const ForesightFlags& flags_;
  std::unique_ptr<Disk> disk_ = make_real_disk();
  int workers_ = 1;
  std::string folder_, note_;
  foresight::Profile profile_;
  std::vector<foresight::Outcome> outcomes_;
  std::optional<SimCluster> cluster_;
};

}  // namespace echelon::cli
