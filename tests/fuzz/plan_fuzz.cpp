// Any text is a plan, as --plan has it and as a file, or has problems; a plan is carried out by some number of workers
// or refused with one that is, and its schedule can be run.

#include <cstdint>
#include <string>

#include "base/error.h"
#include "plan/check.h"
#include "plan/legal.h"
#include "run/plan_file.h"

namespace {

void try_plan(const echelon::PlanSpec& plan) {
  using namespace echelon;
  for (const int workers : {1, 4, 6}) {
    const PlanFacts facts{.workers = workers, .shards = 4, .slices = 2, .layers = {"a", "b", "c", "d", "e"}};
    PlanSpec legal = plan;
    if (!refusals(legal, facts).empty()) legal = nearest_plan(plan, facts);
    invariant(refusals(legal, facts).empty(), "the nearest plan can be carried out");
    const PipelineSchedule s =
        find_schedule(legal.schedule)->make({legal.pipeline, facts.shards / legal.data, legal.chunks});
    if (legal.pipeline > 1 && facts.shards % legal.data == 0)
      invariant(check_schedule(s, chain_messages(s.stages)).problems.empty(), "a legal plan's schedule can be run");
  }
}

}  // namespace

int fuzz_plan(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  if (size > most_plan_bytes) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  {
    Problems problems;
    const Options table = plan_options(text, problems);
    OptionReader reader(table, problems);
    try_plan(read_plan(reader));
  }
  try {
    Problems problems;
    try_plan(parse_plan(text, "input.toml", problems).plan);
  } catch (const BadInput&) {
  }
  return 0;
}
