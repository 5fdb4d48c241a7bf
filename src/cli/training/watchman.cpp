#include "cli/training/watchman.h"

#include "base/json.h"
#include "track/append_log.h"
#include "world/os/folder_disk.h"

namespace echelon::cli {

Watchman::Watchman(double evict_after, std::function<void(const std::string&)> say)
    : evict_after_(evict_after), say_(std::move(say)), clock_(make_real_clock()) {}

void Watchman::look(const std::string& folder) {
  const double now = clock_->seconds();
  if (folder.empty() || now - looked_ < between_looks) return;
  std::vector<RankLook> all = look_at_ranks(folder);
  const Diagnosis found = diagnose(before_, all, before_.empty() ? 0 : now - looked_, clock_->unix_seconds());
  before_ = std::move(all);
  looked_ = now;
  // A process that is gone is told by whoever sees it end; everything else counts when it is seen twice.
  const bool again = found.cause == last_.cause && found.rank == last_.rank;
  last_ = found;
  if (found.cause == Cause::none || found.cause == Cause::died) {
    if (found.cause == Cause::none) told_ = {}, stopped_since_ = -1;
    return;
  }
  if (found.cause == Cause::stopped && stopped_since_ < 0) stopped_since_ = now;
  if (again && (told_.cause != found.cause || told_.rank != found.rank)) tell(folder, found);
  if (found.cause != Cause::stopped || now - stopped_since_ < evict_after_) return;
  for (const RankLook& l : before_)
    if (l.ring.rank == found.rank && l.process.began == l.ring.process_began) {
      const std::string done = fmt::format("stopped for {:.0f} s: it is ended, and replaced", now - stopped_since_);
      record(folder, found, done);
      say_(fmt::format("rank {}: {}", found.rank, done));
      end_process(l.ring.process);
      stopped_since_ = -1;
    }
}

void Watchman::tell(const std::string& folder, const Diagnosis& what) {
  told_ = what;
  const std::string done = what.cause == Cause::stopped
                               ? fmt::format("it is waited for, at most {:g} s (--stopped-after)", evict_after_)
                               : "it is waited for";
  record(folder, what, done);
  say_(what.text() + ": " + done);
}

std::string Watchman::last_words(const std::string& folder, int rank) const {
  if (folder.empty()) return "";
  const auto ring = EventRing::read(ring_path(folder, rank));
  return ring && ring->rank == rank ? echelon::last_words(*ring) : "";
}

void Watchman::record(const std::string& folder, const Diagnosis& what, const std::string& done) const {
  if (folder.empty()) return;
  try {
    const auto disk = make_folder_disk(folder);
    AppendLog(*disk, incidents_path(folder))
        .append(Json{{"time", clock_->unix_seconds()},
                     {"rank", what.rank},
                     {"host", what.host},
                     {"cause", to_string(what.cause)},
                     {"details", what.details},
                     {"operation", what.operation},
                     {"done", done}}
                    .dump() +
                "\n");
  } catch (const std::exception&) {  // a disk that refuses costs a line, never the run
  }
}

}  // namespace echelon::cli
