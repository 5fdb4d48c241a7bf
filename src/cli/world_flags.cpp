#include "cli/world_flags.h"

#include "base/error.h"
#include "world/alone.h"
#include "world/cores.h"

namespace echelon::cli {

int WorldFlags::cores_each() const { return cores > 0 ? cores : std::max(1, available_cores() / workers); }

std::string WorldFlags::command() const {
  std::string text;
  if (workers > 1) text += fmt::format(" --workers {}", workers);
  if (!world.empty()) text += " --world " + world;
  return text + fmt::format(" --cores {}", cores_each());
}

std::string WorldFlags::in_words() const {
  const int each = cores_each();
  const std::string on = fmt::format("{} core{}", each, each == 1 ? "" : "s");
  if (workers == 1) return on;
  return fmt::format("{} workers ({}) with {} each", workers, world.empty() ? "processes" : world, on);
}

void add_world_flags(CLI::App& verb, WorldFlags& flags) {
  verb.add_option("--workers", flags.workers, "Workers that train together; the result does not depend on it")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  verb.add_option("--world", flags.world, "What the workers are: threads, processes (the default) or sim")
      ->check(CLI::IsMember({"threads", "processes", "sim"}));
  verb.add_option("--cores", flags.cores,
                  "Cores of each worker; the result does not depend on it (default: all, shared out)")
      ->check(CLI::Range(1, 1024));
}

void run_on_world(const WorldFlags& flags, std::uint64_t seed, const Program& program) {
  const LaunchOptions options{.seed = seed};
  if (flags.workers == 1 && flags.world.empty()) {
    const auto alone = make_world_alone(seed);
    program(*alone);
  } else if (flags.world == "threads") {
    run_in_threads(flags.workers, options, program);
  } else {
    run_in_processes(flags.workers, options, program);
  }
}

}  // namespace echelon::cli
