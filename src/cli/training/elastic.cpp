#include "cli/training/elastic.h"

#include <csignal>
#include <cstring>

#include "base/error.h"
#include "run/state_keeper.h"

namespace echelon::cli {

namespace {

constexpr int most_in_vain = 10;            // generations in a row that have not done a step
constexpr double seconds_for_others = 0.5;  // to end by themselves: nothing that they could still save is needed

struct Loss {
  int rank, signal;
};

// "rank 1 was lost (killed by signal 9, Killed)"
std::string in_words(const std::vector<Loss>& losses) {
  std::string text;
  for (const Loss& loss : losses)
    text += fmt::format("{}rank {} was lost (killed by signal {}, {})", text.empty() ? "" : ", ", loss.rank,
                        loss.signal, strsignal(loss.signal));
  return text;
}

std::string in_words(int workers) { return fmt::format("{} worker{}", workers, workers == 1 ? "" : "s"); }

void expect_own_workers(const TrainSettings& s) {
  const bool here = s.world.world == "processes" || (s.world.world == "tcp" && s.world.nodes == "1");
  if (!here || known_workers(s.world) != s.world.workers)
    bad_input(
        "--elastic is for workers that this command starts itself, as processes of this machine: --world processes "
        "(the default) or tcp, without --nnodes, mpirun or torchrun");
  if (s.world.workers > KeptState::most_parts)
    bad_input("--elastic is for at most {} workers, not {}", KeptState::most_parts, s.world.workers);
}

}  // namespace

Elastic read_elastic(const std::string& text) {
  if (text.empty()) return Elastic::no;
  if (text == "true" || text == "replace") return Elastic::replace;
  if (text == "shrink") return Elastic::shrink;
  bad_input("--elastic={}: it is --elastic (a lost worker is replaced) or --elastic=shrink (the others take its work)",
            text);
}

void run_elastic(const TrainSettings& given, const LaunchOptions& launch, const TrainingJob& job,
                 const CheckWorkers& check, const RankProgram& program) {
  TrainSettings s = given;
  if (s.world.world.empty()) s.world.world = "processes";
  expect_own_workers(s);
  if (s.elastic == Elastic::shrink && job.plan.splits_model())
    bad_input(
        "--elastic=shrink: a plan that splits the model is for its number of workers; say --elastic, and a lost one "
        "is replaced");
  KeptState kept;
  s.kept = &kept;
  // A rank may be killed when it has made the folder and nobody else knows of it yet.
  const bool began_here = s.run.empty() || !make_real_disk()->exists(RunFolder{s.run}.recipe());
  std::vector<Loss> losses;
  LaunchOptions options = launch;
  options.grace_seconds = seconds_for_others;
  options.on_death = [&](int rank, int signal) { losses.push_back({rank, signal}); };
  int in_vain = 0;
  for (;; ++s.generation) {
    kept.begin(StateKeeper::parts_of(keeps_each_step(job, s.world.workers), s.world.workers, job.shards));
    s.goes_on = kept.has_state();
    const std::int64_t before = kept.step();
    losses.clear();
    try {
      run_on_world(s.world, options, [&](World& world) { program(world, s); });
      const int asked = kept.take_asked_workers();
      if (asked == 0) return;
      Problems problems;
      check(asked, problems);
      if (problems.empty()) s.world.workers = asked;
      s.change = fmt::format("{}: {} go on from step {}",
                             problems.empty() ? "as asked" : "not as asked, " + problems.text(s.recipe),
                             in_words(s.world.workers), kept.step());
    } catch (const Failure&) {
      if (losses.empty()) throw;
      in_vain = kept.step() > before ? 0 : in_vain + 1;
      if (in_vain == most_in_vain) {
        fmt::print(stderr, "{}: {} generations of workers in a row have not done a single step, so it ends here\n",
                   in_words(losses), most_in_vain);
        throw;
      }
      if (s.elastic == Elastic::shrink && s.world.workers > 1) --s.world.workers;
      s.change = fmt::format("{}: {} go on from step {}", in_words(losses), in_words(s.world.workers), kept.step());
    }
    if (!s.quiet) fmt::print(stderr, "{}\n", s.change);
    if (const std::string folder = kept.folder(); !folder.empty()) s.run = folder, s.resume = Resume::automatic;
    if (s.resume == Resume::no && !s.run.empty() && began_here) s.resume = Resume::automatic;
  }
}

}  // namespace echelon::cli
