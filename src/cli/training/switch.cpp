#include "cli/training/switch.h"

#include "base/error.h"
#include "recipe/toml.h"
#include "run/initial_weights.h"
#include "track/control.h"

namespace echelon::cli {

namespace {

// The settings with the part of a system that a request names.
TrainSettings switched(TrainSettings s, const ControlRequest& request) {
  if (!request.system.empty()) {
    s.system = request.system;
    // The codec that an earlier request has put over the system that is left.
    std::erase_if(s.overrides, [](const std::string& o) { return o.starts_with("codec.name="); });
  }
  if (!request.plan.empty()) s.plan = request.plan == "none" ? "data=" + std::to_string(s.world.workers) : request.plan;
  if (!request.codec.empty()) s.overrides.push_back("codec.name=" + request.codec);
  return s;
}

}  // namespace

std::string carry_out(const std::string& wish, int asked, TrainSettings& s, std::shared_ptr<const ReadyJob>& ready,
                      const PrepareJob& prepare) {
  try {
    TrainSettings wanted = s;
    std::shared_ptr<const ReadyJob> job = ready;
    std::string text = "as asked";
    if (!wish.empty()) {
      const ControlRequest request = parse_control(wish);
      wanted = switched(s, request);
      job = prepare(wanted);
      if (floats_of(*job->job.model) != floats_of(*ready->job.model))
        bad_input("{} has other weights than the network that is being trained", in_words(request));
      text = fmt::format("as asked, {}", in_words(request));
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
