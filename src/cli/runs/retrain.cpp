#include "cli/runs/retrain.h"

#include <atomic>

#include "base/error.h"
#include "track/checkpoint.h"
#include "world/os/command.h"
#include "world/os/disk.h"
#include "world/os/host.h"
#include "world/os/signals.h"

namespace echelon::cli {

namespace {

constexpr std::uint64_t largest_retrained = std::uint64_t{1} << 36;

std::optional<SnapshotFiles> trained_on(const RunFolder& run, std::int64_t from, const SnapshotFiles& files,
                                        std::int64_t to) {
  const auto disk = make_real_disk();
  const std::string place = archive_folder(run) + "/retrain";
  const RunFolder copy{place + "/run"};
  const std::string begin = fmt::format("{}/step-{}", copy.checkpoints(), from);
  const std::string end = fmt::format("{}/step-{}", copy.checkpoints(), to);
  disk->remove_all(place);  // of one that was cut short
  disk->make_directories(begin);
  for (const auto& [name, bytes] : files) write_file_atomically(*disk, begin + "/" + name, bytes);
  write_file_atomically(*disk, copy.recipe(), read_text(*disk, run.recipe(), largest_retrained));
  StopSignals signals;
  std::atomic<bool> stop = false;
  std::optional<SnapshotFiles> made;
  // Read as soon as it is there: a training that is asked to stop may write the step it stops at once more.
  const auto look = [&] {
    if (made || !disk->exists(end)) return;
    made.emplace();
    for (const char* name : {model_file, state_file, manifest_file})
      (*made)[name] = read_file(*disk, end + "/" + name, largest_retrained);
  };
  const Command command{.argv = {program_directory() + "/echelon", "train", copy.recipe(), "--run", copy.path,
                                 "--resume", "--set", "train.keep=1000", "--json"},
                        .limit_seconds = 1e9,
                        .tick =
                            [&] {
                              look();
                              stop = made || signals.flag();
                            },
                        .stop = &stop};
  const CommandResult result = run_command(command);
  const bool stopped = signals.flag();
  look();
  disk->remove_all(place);
  if (stopped)
    fail("stopped by a signal while training from step {} to step {} again; no checkpoint was removed", from, to);
  if (!made && result.exit_code != 0)
    bad_input("training from step {} to step {} again does not work, and no checkpoint was removed: {}", from, to,
              result.output);
  return made;
}

}  // namespace

Retrain retrain_of(const RunFolder& folder) {
  return [folder](std::int64_t from, const SnapshotFiles& files, std::int64_t to) {
    std::optional<SnapshotFiles> made;
    // A training leaves a save out while the one before is being written.
    for (int tries = 0; tries < 3 && !made; ++tries) made = trained_on(folder, from, files, to);
    return made;
  };
}

}  // namespace echelon::cli
