#include "world/launch.h"
#include "world/transport/memory/memory_world.h"
#include "world/transport/processes/children.h"

namespace echelon {

void run_in_processes(int ranks, const LaunchOptions& options, const Program& program) {
  const auto segment = Segment::create(Segment::Reach::machine, ranks, options.shared_bytes);
  run_children(*segment,
               {.grace_seconds = options.grace_seconds,
                .hears_signals = options.hears_signals,
                .on_death = options.on_death,
                .on_signal = options.on_signal,
                .go_on = options.go_on},
               [&](int rank) { run_rank("processes", *segment, rank, options.seed, program); });
  segment->failure().throw_to_launcher();
}

}  // namespace echelon
