#pragma once
// `echelon plan RECIPE --sweep workers=1..1024`: scaling, and `--allow`: systems whose result is another one.

#include <string>
#include <vector>

#include "cli/foresight/foreseen.h"
#include "foresight/rank_plans.h"
#include "foresight/systems.h"

namespace echelon::cli {

struct SweepSettings {
  const ForesightFlags& flags;
  std::string sweep, svg;
  bool json = false, weak = false;
  std::size_t memory = 0;
};
void sweep_workers(const SweepSettings& settings, Foreseen& foreseen);

using foresight::Allowed;
Allowed read_allowed(const std::string& text);  // "async,local"; BadInput for other words
std::vector<foresight::SystemEstimate> estimate_systems(const PreparedRun& prepared,
                                                        const foresight::Platform& platform, const Allowed& allowed,
                                                        const foresight::Ranking& ranking);
Json to_json(const std::vector<foresight::SystemEstimate>& systems);
void print_systems(const std::vector<foresight::SystemEstimate>& systems);

}  // namespace echelon::cli
