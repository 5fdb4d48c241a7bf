#include "parallel/team/sub_team.h"

#include "world/wrappers/sub_world.h"

namespace echelon {

SubTeam::SubTeam(Team& whole, std::vector<Rank> ranks, int number)
    : world_(make_sub_world(whole.world(), ranks, number)), team_(*world_, whole.cores(), true) {
  const WaitOptions outer = whole.group().wait_policy().options();
  team_.timeout = whole.timeout;
  team_.on_late = [ranks, notice = outer.notice](WaitNotice late) {
    for (Rank& r : late.waited_for) r = ranks[static_cast<std::size_t>(r)];
    if (notice) notice(late);
  };
  if (ranks.size() == 1) return;
  WaitOptions options = team_.group().wait_policy().options();
  options.floor = outer.floor, options.factor = outer.factor, options.limit = outer.limit;
  options.waited = [ranks, waited = outer.waited](Rank r, double seconds) {
    if (waited) waited(ranks[static_cast<std::size_t>(r)], seconds);
  };
  team_.group().wait_policy().set_options(std::move(options));
}

}  // namespace echelon
