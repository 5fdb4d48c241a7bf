#include <vector>

#include "world/launch.h"
#include "world/os/tasks.h"
#include "world/transport/memory/memory_world.h"

namespace echelon {

void run_in_threads(int ranks, const LaunchOptions& options, const Program& program) {
  const auto segment = Segment::create(Segment::Reach::process, ranks, options.shared_bytes);
  {
    std::vector<std::unique_ptr<Task>> tasks;
    for (int rank = 0; rank < ranks; ++rank)
      tasks.push_back(spawn_thread(fmt::format("rank {}", rank),
                                   [&, rank] { run_rank("threads", *segment, rank, options.seed, program); }));
  }
  segment->failure().throw_to_launcher();
}

}  // namespace echelon
