#include "cli/training/log_listener.h"

#include <fmt/chrono.h>

#include <cmath>

#include "cli/training/progress_listener.h"

namespace echelon::cli {

LogListener::LogListener(Disk& disk, Clock& clock, const RunFolder& folder, int rank)
    : disk_(disk), clock_(clock), folder_(folder.path + "/logs"), log_(disk, folder.log(rank)) {}

void LogListener::begin() {
  mutex_.take([&] {
    try {
      disk_.make_directories(folder_);
    } catch (const DiskError&) {
      // The first line will find the same.
    }
    begun_ = true;
    append(kept_);
    kept_.clear();
  });
}

void LogListener::append(std::string_view lines) {
  if (!begun_) {
    kept_ += lines;
    return;
  }
  try {
    log_.append(lines);
  } catch (const DiskError&) {
    // Kept by the log, and written once the disk takes it; the checkpoints and metrics complain for all of us.
  }
}

void LogListener::write(std::string_view kind, std::string_view text) {
  const double now = clock_.unix_seconds(), second = std::floor(now);
  const std::string time = fmt::format("{:%Y-%m-%d %H:%M:%S}.{:03}", fmt::gmtime(static_cast<std::time_t>(second)),
                                       static_cast<int>((now - second) * 1000));
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines += fmt::format("{} {:<6} {}\n", time, kind, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  mutex_.take([&] { append(lines); });
}

void LogListener::on_evaluation(const EvaluationEvent& e) { write(e.part, in_words(e)); }

void LogListener::on_save(const SaveResult& r) {
  if (r.saved)
    write("saved", fmt::format("{}  weights sha256 {}  in {:.2f} s", r.path, r.weights_sha256, r.seconds));
  else if (r.skipped)
    write("saved", fmt::format("not at step {}: the save before was still under way", r.step));
}

}  // namespace echelon::cli
