#include "cli/training/elastic.h"

#include <csignal>
#include <cstring>

#include "base/error.h"
#include "cli/training/switch.h"
#include "cli/training/watchman.h"
#include "run/run_plan.h"
#include "run/training/state_keeper.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

constexpr int most_in_vain = 10;            // generations in a row that have come no further
constexpr int most_in_vain_again = 100;     // the same, where each first does again what was done since the last copy
constexpr int most_doubts = 3;              // at one step
constexpr double seconds_for_others = 0.5;  // to end by themselves, after one has failed that was not killed

void expect_own_workers(const TrainSettings& s) {
  const bool here = s.world.world == "processes" || (s.world.world == "tcp" && s.world.nodes == "1");
  if (!here || known_workers(s.world) != s.world.workers)
    bad_input(
        "--elastic is for workers that this command starts itself, as processes of this machine: --world processes "
        "(the default) or tcp, without --nnodes, mpirun or torchrun; with --nnodes MIN:MAX machines come and go "
        "without it");
  if (s.world.workers > KeptState::most_parts)
    bad_input("--elastic is for at most {} workers, not {}", KeptState::most_parts, s.world.workers);
}

// What a killed worker costs, for people.
std::string keeping_in_words(const TrainSettings& s, const ReadyJob& ready) {
  const bool each_step = keeps_each_step(ready.job, s.world.workers);
  const Composition* system = s.world.workers > 1 ? ready.job.composition.get() : nullptr;
  const bool repeats = !system || (system->follows_messages() && s.elastic == Elastic::replace);
  const bool messages = system ? system->uses_messages() : ready.job.plan.is_message_driven();
  const bool in_order = repeats && messages && s.keep != Keep::checkpoint, same_bits = repeats && !messages;
  const std::string again = in_order    ? "are done again, with every message in the same order: no update is lost"
                            : same_bits ? "are done again, with the same bits"
                                        : "are trained again: their updates are lost";
  if (s.check_replicas > 0)
    return fmt::format(
        "a copy of the state is kept after every {} steps, once all workers agree; if a worker is killed, "
        "the steps since then {}",
        s.check_replicas, again);
  if (s.keep == Keep::checkpoint) return "if a worker is killed, the steps since the last checkpoint " + again;
  if (s.keep == Keep::buddy || (s.keep == Keep::usual && each_step))
    return "a copy of the state is kept after every step; if a worker is killed, the open step is done again";
  return fmt::format("a copy of the state is kept after every {} steps; if a worker is killed, the steps since then {}",
                     StateKeeper::steps_between, again);
}

}  // namespace

std::string in_words(const std::vector<WorkerLoss>& losses) {
  std::string text;
  for (const WorkerLoss& loss : losses)
    text += fmt::format("{}rank {} was lost (killed by signal {}, {}){}{}", text.empty() ? "" : ", ", loss.rank,
                        loss.signal, strsignal(loss.signal), loss.at_its_end.empty() ? "" : " ", loss.at_its_end);
  return text;
}

std::string workers_in_words(int workers) { return fmt::format("{} worker{}", workers, workers == 1 ? "" : "s"); }

Keep read_keep(const std::string& text) {
  if (text.empty()) return Keep::usual;
  if (text == "buddy") return Keep::buddy;
  if (text == "replay") return Keep::replay;
  if (text == "checkpoint") return Keep::checkpoint;
  bad_input("--keep={}: it is buddy, replay or checkpoint", text);
}

void expect_comparable(const TrainSettings& s, const ReadyJob& ready, int workers) {
  if (s.check_replicas == 0) return;
  if (workers == 1) bad_input("--check-replicas compares workers, and there is one: say --workers 2 or more");
  if (ready.job.composition || ready.job.plan.splits_model())
    bad_input(
        "--check-replicas is for exact training with the whole model on every worker: the replicas of other systems "
        "differ, and a split model has none. Leave it out, or leave out --system and --plan");
  for (const BitFlip& f : s.flips)
    if (workers > 0 && f.rank >= workers) bad_input("--flip-bit: there is no rank {} among {}", f.rank, workers);
}

std::optional<Doubt> take_doubt(const std::string& wish, TrainSettings& s, int& doubts) {
  if (wish.empty()) return std::nullopt;
  const Json json = Json::parse(wish);
  const std::string action = json.value("action", "");
  s.doubt.clear();
  if (action != "leave_out" && action != "recompute") return std::nullopt;
  Doubt doubt{json.at("because").get<std::string>()};
  if (action == "leave_out") {
    doubt.left_out = json.at("rank").get<int>();
    return doubt;
  }
  const auto step = json.at("step").get<std::int64_t>();
  if (++doubts == most_doubts) fail("{}, {} times in a row: this machine cannot be trusted", doubt.because, doubts);
  s.doubt = json.at("doubt").get<std::string>();
  std::erase_if(s.flips, [&](const BitFlip& f) { return f.step <= step; });
  return doubt;
}

Elastic read_elastic(const std::string& text) {
  if (text.empty()) return Elastic::no;
  if (text == "true" || text == "replace") return Elastic::replace;
  if (text == "shrink") return Elastic::shrink;
  bad_input("--elastic={}: it is --elastic (a lost worker is replaced) or --elastic=shrink (the others take its work)",
            text);
}

void check_workers(const ReadyJob& ready, const TrainSettings& s, int workers, Problems& problems) {
  check_run_plan(ready.prepared, ready.job.plan, workers, s.world.cores, problems);
  if (problems.empty()) check_system(ready.prepared, {.count = workers, .plan = ready.job.plan}, problems);
}

bool keeps_layout(const TrainingJob& before, int workers_before, const TrainingJob& now, int workers_now) {
  // Plans with a result of their own remember what others do not.
  const bool own = now.plan.has_own_result(), owned = before.plan.has_own_result();
  if (own || owned)
    return own && owned && to_string(now.plan) == to_string(before.plan) && workers_before == workers_now;
  const bool replicas = trains_replicas(now.composition.get(), workers_now),
             were = trains_replicas(before.composition.get(), workers_before);
  if (!replicas && !were) return true;  // exact training: the same state, however many share the work
  return replicas && were && workers_before == workers_now && before.recipe_fingerprint == now.recipe_fingerprint;
}

void run_elastic(const TrainSettings& given, const LaunchOptions& launch, std::shared_ptr<const ReadyJob> ready,
                 const PrepareJob& prepare) {
  TrainSettings s = given;
  if (s.world.world.empty()) s.world.world = "processes";
  expect_own_workers(s);
  expect_comparable(s, *ready, s.world.workers);
  if (s.elastic == Elastic::shrink && ready->job.plan.splits_model())
    bad_input(
        "--elastic=shrink: a plan that splits the model is for its number of workers; say --elastic, and a lost one "
        "is replaced");
  if (!s.quiet) fmt::print(stderr, "elastic: {}\n", keeping_in_words(s, *ready));
  KeptState kept;
  s.kept = &kept;
  // A rank may be killed when it has made the folder and nobody else knows of it yet.
  const bool began_here = s.run.empty() || !make_real_disk()->exists(RunFolder{s.run}.recipe());
  std::vector<WorkerLoss> losses;
  LaunchOptions options = launch;
  options.grace_seconds = seconds_for_others;
  Watchman watchman(s.world.stopped_after, [&](const std::string& text) {
    if (!s.quiet) fmt::print(stderr, "{}\n", text);
  });
  options.on_death = [&](int rank, int signal) {
    losses.push_back({rank, signal, watchman.last_words(kept.folder(), rank)});
    watchman.record(kept.folder(),
                    {.cause = Cause::died,
                     .rank = rank,
                     .host = host_name(),
                     .operation = losses.back().at_its_end,
                     .details = fmt::format("killed by signal {}, {}", signal, strsignal(signal))},
                    s.elastic == Elastic::shrink ? "the others take over its work" : "it is replaced");
  };
  options.go_on = [&] {
    watchman.look(kept.folder());
    return losses.empty();  // the others hold nothing that is still needed: the sooner they end, the sooner it goes on
  };
  int in_vain = 0, doubts = 0, restarts = 0;
  std::shared_ptr<const ReadyJob> kept_by = ready;  // whose state is kept, and of how many workers
  int kept_workers = s.world.workers;
  const auto do_as_asked = [&](int asked) {
    const std::string wish = kept.take_wish();
    if (const auto doubt = take_doubt(wish, s, doubts)) {
      if (doubt->left_out >= 0) s.world.workers = asked;
      if (asked == 1) s.check_replicas = 0;  // nobody is left to compare with
      return doubt->because;
    }
    if (!s.servers.empty() && kept.pace() > 0) s.tried[s.servers] = kept.pace();
    return carry_out(wish, asked, s, ready, prepare);
  };
  for (;; ++s.generation) {
    s.keeping = {.count = s.world.workers};
    kept.begin(StateKeeper::parts_of(keeps_each_step(ready->job, s.world.workers), s.keeping, ready->job.shards));
    s.goes_on = kept.has_state();
    const std::int64_t before = kept.furthest();
    const std::uint64_t version = kept.version();
    const std::shared_ptr<const ReadyJob> now = ready;
    const int workers = s.world.workers;
    const auto note_keeper = [&] {
      if (kept.version() != version) kept_by = now, kept_workers = workers;
    };
    losses.clear();
    watchman.begin_generation();
    kept.set_pace(0);
    try {
      run_on_world(s.world, options, [&](World& world) { train_rank(world, s, ready->prepared, ready->job); });
      const int asked = kept.take_asked_workers();
      if (asked == 0) return;
      note_keeper();
      if (kept.furthest() > before) doubts = 0;
      s.change = do_as_asked(asked);
    } catch (const Failure&) {
      if (losses.empty()) throw;
      note_keeper();
      in_vain = kept.furthest() > before ? 0 : in_vain + 1;
      const bool again = s.check_replicas > 0 || s.keep == Keep::replay || s.keep == Keep::checkpoint ||
                         !keeps_each_step(ready->job, s.world.workers);
      if (in_vain == (again ? most_in_vain_again : most_in_vain)) {
        fmt::print(stderr, "{}: {} generations of workers in a row have come no further, so it ends here\n",
                   in_words(losses), in_vain);
        throw;
      }
      if (++restarts > s.max_restarts && s.max_restarts >= 0) {
        fmt::print(stderr, "{}: workers were replaced {} times, as often as --max-restarts allows\n", in_words(losses),
                   s.max_restarts);
        throw;
      }
      const int asked = kept.take_asked_workers();  // by those who were ready to hand over when another one was lost
      const std::string done = asked != 0 ? ", " + do_as_asked(asked) : "";
      if (s.elastic == Elastic::shrink && s.world.workers > 1) {
        Problems problems;  // a system that needs so many
        check_workers(*ready, s, s.world.workers - 1, problems);
        if (problems.empty()) --s.world.workers;
      }
      s.change = in_words(losses) + done;
    }
    s.weights_only = kept.has_state() && !keeps_layout(kept_by->job, kept_workers, ready->job, s.world.workers);
    s.change += fmt::format(": {} go on from {}{}", workers_in_words(s.world.workers),
                            kept.has_state() ? fmt::format("step {}", kept.step()) : "the last checkpoint",
                            s.weights_only ? " with its weights" : "");
    if (!s.quiet) fmt::print(stderr, "{}\n", s.change);
    if (const std::string folder = kept.folder(); !folder.empty()) s.run = folder, s.resume = Resume::automatic;
    if (s.resume == Resume::no && !s.run.empty() && began_here) s.resume = Resume::automatic;
  }
}

}  // namespace echelon::cli
