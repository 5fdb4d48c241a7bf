#include "cli/training/train_folder.h"

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "cli/report.h"
#include "recipe/differences.h"
#include "recipe/toml.h"
#include "run/job.h"
#include "track/checkpoint.h"
#include "world/os/host.h"

namespace echelon::cli {

namespace {

std::string stem_of(const std::string& path) { return std::filesystem::path(path).stem().string(); }

RunFolder new_run(Disk& disk, const TrainSettings& s, const std::string& recipe) try {
  return s.run.empty() ? create_run(disk, s.root, stem_of(s.recipe), recipe) : create_run_at(disk, s.run, recipe);
} catch (const DiskError& problem) {
  bad_input("the run's folder cannot be made ({}); name another place with --run DIR", problem.what());
}

// The run that was named, or the newest of this recipe; none if there is none yet.
std::optional<RunFolder> existing_run(Disk& disk, const TrainSettings& s) {
  if (!s.run.empty()) {
    const RunFolder named{s.run.ends_with('/') && s.run.size() > 1 ? s.run.substr(0, s.run.size() - 1) : s.run};
    return disk.exists(named.recipe()) ? std::optional(named) : std::nullopt;
  }
  const std::string stem = stem_of(s.recipe) + "-";
  std::optional<RunFolder> newest;
  if (disk.is_directory(s.root))
    for (const RunInfo& run : list_runs(disk, s.root))
      if (run.name.starts_with(stem) && run.name.find('/') == std::string::npos) newest = run.folder;
  return newest;
}

[[noreturn]] void nothing_to_resume(Disk& disk, const TrainSettings& s) {
  const std::string cure = "leave out --resume to start it, or say --resume=auto: go on if there is a run, else start";
  if (s.run.empty())
    bad_input("there is no run of {} in {} to resume; name one with --run DIR, {}", s.recipe, s.root, cure);
  if (disk.is_directory(s.run + "/checkpoints"))
    bad_input(
        "{}: its recipe.toml is missing, and without it nobody knows what made its checkpoints, so it cannot be "
        "resumed; "
        "put the file back, or start a new run in another folder",
        s.run);
  if (disk.is_directory(s.run)) bad_input("{}: there is no run in this folder to resume; {}", s.run, cure);
  bad_input("{}: there is no run here to resume; {}", s.run, cure);
}

// Before anything is trained that could not be kept.
void expect_writable(Disk& disk, const RunFolder& folder) {
  const std::string probe = fmt::format("{}/.writable-{}", folder.path, process_id());
  try {
    disk.create(probe);
    disk.remove_all(probe);
  } catch (const DiskError& problem) {
    bad_input(
        "{} cannot be written ({}), so its run cannot go on there: make it writable, or copy the folder and name "
        "the copy with --run",
        folder.path, problem.what());
  }
}

Options recipe_in(Disk& disk, const RunFolder& folder) {
  return parse_toml(read_text(disk, folder.recipe(), TomlLimits{}.bytes), folder.recipe());
}

bool same_training(const TrainingPosition& was, const TrainingJob& job) {
  return was.model == job.model_fingerprint && was.data == job.data_fingerprint && was.seed == job.seed &&
         was.recipe == job.recipe_fingerprint;
}

struct OtherRate {
  std::int64_t step;
  double was, is;
};

// The first of `steps` steps that had another rate under the recipe `was` than it has now: schedules may follow the
// length of the run.
std::optional<OtherRate> first_other_rate(const Options& was, const PreparedRun& now, std::int64_t steps) {
  Problems problems;
  OptionReader whole(was, problems), table = whole.table("train");
  const std::int64_t before = now.steps_of(read_train(table));
  if (!problems.empty() || before == now.total_steps) return std::nullopt;
  const Schedule old_rates = now.schedule(before), rates = now.schedule();
  for (std::int64_t step = 0; step < steps; ++step)
    if (old_rates.lr(step) != rates.lr(step)) return OtherRate{step, old_rates.lr(step), rates.lr(step)};
  return std::nullopt;
}

// What goes on with the run, if the folder's own recipe does: advice that was refused already is none.
std::string way_on(Disk& disk, const RunFolder& folder, const TrainSettings& s) {
  std::vector<std::string> length;  // which may differ
  for (const std::string& o : s.overrides)
    if (o.starts_with("train.epochs=") || o.starts_with("train.steps=")) length.push_back(o);
  std::vector<std::vector<std::string>> ways{length};
  if (!length.empty()) ways.emplace_back();
  for (const auto& overrides : ways) try {
      Problems problems;
      const PreparedRun own = prepare_run(disk, folder.recipe(), overrides, problems, s.places);
      problems.throw_if_any(folder.recipe());
      const TrainingJob job = make_job(own);
      const CheckpointSearch search = latest_valid(disk, folder.checkpoints());
      const std::int64_t step = search.found ? search.found->manifest.position.step : 0;
      if (search.found && (!same_training(search.found->manifest.position, job) || step > job.total_steps)) continue;
      if (first_other_rate(recipe_in(disk, folder), own, step)) continue;
      std::string command = resuming_command(folder);
      for (const std::string& o : overrides) command += " --set " + shell_quoted(o);
      return "It goes on with: " + command;
    } catch (const Error&) {  // then it does not
    }
  TrainSettings anew = s;
  anew.resume = Resume::no;
  anew.run.clear();
  return fmt::format("Its own recipe cannot go on either. A new run: {}", anew.command());
}

// A folder without a checkpoint has a recipe all the same, and is not to become a run of another one.
void expect_recipe_of(Disk& disk, const RunFolder& folder, const TrainSettings& s, const TrainingJob& job) {
  Problems problems;
  const PreparedRun begun = prepare_run(disk, folder.recipe(), {}, problems, s.places);
  problems.throw_if_any(folder.recipe());
  const TrainingJob was = make_job(begun);
  if (!same_training({.seed = was.seed,
                      .model = was.model_fingerprint,
                      .data = was.data_fingerprint,
                      .recipe = was.recipe_fingerprint,
                      .score = {}},
                     job))
    bad_input("{} was begun with another recipe: go on with that, or start a new run", folder.path);
}

// A schedule may follow the length of the run. If it does, a longer run would have had other rates from its first step
// on, and weights that were begun with one length and ended with another are those of no recipe.
void expect_same_rates(const Options& was, const PreparedRun& now, std::int64_t steps, const RunFolder& folder,
                       const TrainSettings& s) {
  const std::optional<OtherRate> other = first_other_rate(was, now, steps);
  if (!other) return;
  TrainSettings anew = s;
  anew.resume = Resume::no;
  anew.run.clear();
  const std::string command = anew.command();
  std::string was_text, is_text;  // with as many digits as it takes to see the difference
  for (int digits = 4; was_text == is_text && digits <= 17; ++digits)
    was_text = fmt::format("{:.{}g}", other->was, digits), is_text = fmt::format("{:.{}g}", other->is, digits);
  bad_input(
      "{0} was trained for {1} steps with rates that follow the length of the run (schedule {2}): step {3} had "
      "{4}, "
      "and in a run of {5} steps it has {6}. No recipe would make such weights, so it cannot become longer or "
      "shorter.\n"
      "  the whole length anew:              {7}\n"
      "  a new run that begins with its weights: {7} --set model.init={8}",
      folder.path, steps, now.recipe.schedule.name, other->step + 1, was_text, now.total_steps, is_text, command,
      shell_quoted(folder.path));
}

// From here on the folder's recipe is this one.
void adopt_recipe(Disk& disk, const RunFolder& folder, const PreparedRun& prepared,
                  const std::vector<Difference>& changed, const std::function<void(const std::string&)>& note) {
  if (changed.empty()) return;
  write_file_atomically(disk, folder.recipe(), resolved_toml(prepared.recipe));
  for (const Difference& d : changed)
    note(fmt::format("{} = {} from here on (was {}); {} says so now", d.key, d.second, d.first, folder.recipe()));
}

}  // namespace

void take_recipe(Disk& disk, const RunFolder& folder, const PreparedRun& prepared,
                 const std::function<void(const std::string&)>& note) {
  const std::string now = resolved_toml(prepared.recipe);
  adopt_recipe(disk, folder, prepared, differences(recipe_in(disk, folder), parse_toml(now, "")), note);
}

std::shared_ptr<const InitialWeights> initial_weights(Disk& disk, const TrainSettings& s, PreparedRun& prepared,
                                                      Problems& problems) {
  std::optional<StartSpec>& start = prepared.recipe.start;
  if (!start || start->from.empty()) return nullptr;
  const std::optional<RunFolder> existing = s.resume == Resume::no ? std::nullopt : existing_run(disk, s);
  if (!existing || !latest_valid(disk, existing->checkpoints()).found)
    return load_initial_weights(disk, prepared, problems);
  Problems ignored;  // of a recipe that was refused by nobody when the run began
  const Options was = recipe_in(disk, *existing);
  OptionReader whole(was, ignored), model = whole.table("model");
  const std::optional<StartSpec> begun = read_start(model);
  if (start->sha256.empty() && begun && begun->from == start->from) record_start(prepared.recipe, begun->sha256);
  if (start->sha256.empty()) return load_initial_weights(disk, prepared, problems);
  return nullptr;
}

TrainFolder open_train_folder(Disk& disk, const TrainSettings& s, const PreparedRun& prepared) {
  TrainFolder opened;
  const std::optional<RunFolder> existing = s.resume == Resume::no ? std::nullopt : existing_run(disk, s);
  if (!existing && s.resume == Resume::yes) nothing_to_resume(disk, s);
  if (existing) expect_files(disk, *existing);
  opened.resumes = existing.has_value();
  opened.folder = existing ? *existing : new_run(disk, s, resolved_toml(prepared.recipe));
  opened.lock = lock_folder(opened.folder.path);
  if (!opened.lock)
    bad_input("another process is training in {}: wait for its end, or name a folder with --run", opened.folder.path);
  if (existing) expect_writable(disk, opened.folder);
  return opened;
}

bool resume_training(Training& training, Disk& disk, const RunFolder& folder, const TrainSettings& s,
                     const PreparedRun& prepared, const TrainingJob& job, bool first,
                     const std::function<void(const std::string&)>& note) {
  const auto if_damaged = s.restart ? Training::AllDamaged::restart : Training::AllDamaged::refuse;
  if (!first) return training.resume(if_damaged);
  const Options was = recipe_in(disk, folder);
  const std::vector<Difference> changed = differences(was, parse_toml(resolved_toml(prepared.recipe), ""));
  bool found = false;
  try {
    found = training.resume(if_damaged);
    if (!found) expect_recipe_of(disk, folder, s, job);
  } catch (const BadInput& problem) {
    std::string text = problem.what();
    for (const Difference& d : changed)
      text += fmt::format("\n  {} = {} in {}, {} here", d.key, d.first, folder.recipe(), d.second);
    throw BadInput(text + "\n" + way_on(disk, folder, s));
  } catch (const AllCheckpointsDamaged& problem) {
    bad_input("{}\nTo begin again at the first step: {} --restart", problem.what(), resuming_command(folder));
  }
  expect_same_rates(was, prepared, training.next_step(), folder, s);
  adopt_recipe(disk, folder, prepared, changed, note);
  return found;
}

}  // namespace echelon::cli
