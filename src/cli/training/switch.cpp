#include "cli/training/switch.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "recipe/toml.h"
#include "run/training/initial_weights.h"
#include "track/control.h"

namespace echelon::cli {

namespace {

// Of the numbers of servers that were tried; in words for people, too.
std::string quickest(const std::map<std::string, double>& tried, std::string& words) {
  if (tried.empty()) bad_input("nothing was tried yet of which one could be the quickest");
  words += fmt::format(": {} (", std::ranges::min_element(tried, {}, [](const auto& t) { return t.second; })->first);
  for (const auto& [servers, seconds] : tried)
    words += fmt::format("{}{}: {:.3f} ms a step", words.ends_with('(') ? "" : ", ", servers, 1000 * seconds);
  words += ")";
  return std::ranges::min_element(tried, {}, [](const auto& t) { return t.second; })->first;
}

}  // namespace

TrainSettings switched(TrainSettings s, const ControlRequest& request, std::string& words) {
  if (!request.system.empty()) {
    s.system = request.system;
    // What earlier requests have put over the system that is left.
    std::erase_if(s.overrides, [](const std::string& o) {
      return o.starts_with("codec.name=") || o.starts_with("exchange.servers=");
    });
    s.servers.clear(), s.tried.clear();
  }
  if (!request.plan.empty()) s.plan = request.plan == "none" ? "data=" + std::to_string(s.world.workers) : request.plan;
  if (!request.servers.empty()) {
    s.chosen = request.servers == "quickest";
    s.servers = s.chosen ? quickest(s.tried, words) : request.servers;
    std::erase_if(s.overrides, [](const std::string& o) { return o.starts_with("exchange.servers="); });
    s.overrides.push_back("exchange.servers=" + (s.servers == "all" ? "\"all\"" : s.servers));
  }
  if (!request.codec.empty()) s.overrides.push_back("codec.name=" + request.codec);
  return s;
}

std::string carry_out(const std::string& wish, int asked, TrainSettings& s, std::shared_ptr<const ReadyJob>& ready,
                      const PrepareJob& prepare) {
  try {
    s.chosen = false;
    TrainSettings wanted = s;
    std::shared_ptr<const ReadyJob> job = ready;
    std::string text = "as asked";
    if (!wish.empty()) {
      const ControlRequest request = parse_control(wish);
      text = fmt::format("as asked, {}", in_words(request));
      wanted = switched(s, request, text);
      job = prepare(wanted);
      if (floats_of(*job->job.model) != floats_of(*ready->job.model))
        bad_input("{} has other weights than the network that is being trained", in_words(request));
    }
    if (asked != KeptState::same_workers) wanted.world.workers = asked;
    Problems problems;
    check_workers(*job, wanted, wanted.world.workers, problems);
    problems.throw_if_any(s.recipe);
    s = wanted;
    ready = job;
    return text;
  } catch (const Error& problem) {
    return fmt::format("not as asked ({})", problem.what());
  }
}

}  // namespace echelon::cli
