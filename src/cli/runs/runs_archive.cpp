// `echelon runs archive`: a run's checkpoints in little space, and back. `echelon runs export`: a run as one file.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/runs/retrain.h"
#include "cli/runs/run_facts.h"
#include "cli/runs/run_html.h"
#include "cli/runs/run_table.h"
#include "cli/verbs.h"
#include "registry/archive.h"
#include "world/os/folder_disk.h"
#include "world/os/folder_lock.h"

namespace echelon::cli {

namespace {

struct ArchiveSettings {
  std::string root = "runs", run, html;
  std::vector<std::string> restore;
  bool json = false, retrain = false;
};

std::int64_t step_of(const std::string& word) {
  std::size_t used = 0;
  std::int64_t step = -1;
  try {
    step = std::stoll(word, &used);
  } catch (const std::exception&) {
  }
  if (step < 0 || used != word.size()) bad_input("--restore {}: is no step; `--restore 300`, or `--restore all`", word);
  return step;
}

void restore_snapshots(const ArchiveSettings& s, Disk& disk, const RunFolder& folder) {
  std::vector<std::int64_t> steps;
  for (const std::string& word : s.restore)
    if (word == "all")
      steps = archived_steps(disk, folder);
    else
      steps.push_back(step_of(word));
  Json paths = Json::array();
  for (const std::int64_t step : steps) paths.push_back(restore_checkpoint(disk, folder, step, retrain_of(folder)));
  if (s.json)
    fmt::print("{}\n", Json{{"restored", paths}}.dump());
  else
    for (const Json& path : paths) fmt::print("{}\n", path.get<std::string>());
}

void archive_run(const ArchiveSettings& s) {
  const RunFolder folder = open_run(*make_real_disk(), s.root, s.run);
  const auto lock = lock_folder(folder.path);
  if (!lock) bad_input("{}: a process trains in it; stop that first", folder.path);
  const auto disk = make_folder_disk(folder.path);
  if (!s.restore.empty()) return restore_snapshots(s, *disk, folder);
  const ArchiveResult r = archive_checkpoints(*disk, folder, s.retrain ? retrain_of(folder) : Retrain{});
  const double weights =
      r.weights_plain > 0 ? static_cast<double>(r.weights_archived) / static_cast<double>(r.weights_plain) : 0;
  const double share = r.plain > 0 ? static_cast<double>(r.archived) / static_cast<double>(r.plain) : 0;
  if (s.json) {
    fmt::print("{}\n", Json{{"folder", archive_folder(folder)},
                            {"snapshots", r.snapshots},
                            {"plain_bytes", r.plain},
                            {"archived_bytes", r.archived},
                            {"share", share},
                            {"weights_share", weights},
                            {"retrained", r.retrained},
                            {"removed", r.removed}}
                           .dump());
    return;
  }
  if (r.not_retrained >= 0)
    fmt::print(stderr, "training again gave other bits at step {}: from there on everything is stored\n",
               r.not_retrained);
  fmt::print(
      "{}: {} snapshots, {} instead of {} ({:.0f} %; weights alone {:.0f} %); {} checkpoints removed; the newest, "
      "the best and those of registered models stay\n"
      "back with: echelon runs archive {} --restore STEP\n",
      archive_folder(folder), r.snapshots, human_bytes(static_cast<double>(r.archived)),
      human_bytes(static_cast<double>(r.plain)), 100 * share, 100 * weights, r.removed.size(), shell_quoted(s.run));
  if (r.retrained > 0)
    fmt::print(
        "{} of them are trained again when they are wanted, from the one before: keep the data and this program\n",
        r.retrained);
}

void export_run(const ArchiveSettings& s) {
  const auto disk = make_real_disk();
  const RunFolder folder = open_run(*disk, s.root, s.run);
  const std::string path = s.html.empty() ? folder.name() + ".html" : s.html;
  if (disk->is_directory(path)) bad_input("{} is a folder; name another file with --html", path);
  write_named_file(*disk, path, run_html(*make_folder_disk(folder.path), run_facts(folder)));
  if (s.json)
    fmt::print("{}\n", Json{{"run_dir", folder.path}, {"html", path}}.dump());
  else
    fmt::print("wrote {}\n", path);
}

}  // namespace

void add_runs_archive(Verb runs) {
  const auto s = std::make_shared<ArchiveSettings>();
  const auto part = [&](const char* name, const char* help, const char* examples, void (*act)(const ArchiveSettings&)) {
    const Verb p = runs.add_subcommand(name, help);
    p.add_option("run", s->run, "A run's folder, or its name in runs/").required();
    p.add_option("--root", s->root, "Where the runs are").show_default();
    p.add_flag("--json", s->json, "Print JSON");
    p.footer(std::string("Examples:\n  ") + examples);
    p.action([s, act] { act(*s); });
    return p;
  };
  const Verb archive =
      part("archive", "Keep a run's checkpoints as compressed differences, or bring them back",
           "echelon runs archive demo-1\n  echelon runs archive demo-1 --retrain\n  echelon runs archive demo-1 "
           "--restore 300\n  echelon runs archive demo-1 --restore all",
           archive_run);
  archive.add_option("--restore", s->restore, "Put the checkpoint of this step back (all: every one)").one_each_time();
  archive.add_flag("--retrain", s->retrain,
                   "Store every second checkpoint only: the others are trained again when they are wanted, which is "
                   "tried for each before it is removed");
  part("export", "Write a run as one HTML file that opens anywhere", "echelon runs export demo-1 --html demo-1.html",
       export_run)
      .add_option("--html", s->html, "The file (default: RUN.html)");
}

}  // namespace echelon::cli
