#pragma once
// logs/rank_N.log of a run: one line for everything worth one, with its time in UTC, so that the story of the run can
// be read later: how it was started, what it is, evaluations, saves, notes, how it ended. A resumed run goes on in the
// same file.
//
//   2026-11-15 22:44:08.123 note   resuming after step 70 of 190
//
// A disk that refuses costs lines, never the run. Lines are kept until `begin`: a run that is refused leaves the file
// as it was. Tasks may write at the same time.

#include <string_view>

#include "run/events.h"
#include "track/append_log.h"
#include "track/run.h"
#include "world/os/clock.h"
#include "world/os/mutex.h"

namespace echelon::cli {

class LogListener : public RunListener {
 public:
  LogListener(Disk& disk, Clock& clock, const RunFolder& folder, int rank);
  void begin();  // writes what was kept, and from now on each line at once
  // `kind` is a word such as "start"; each line of `text` becomes a line.
  void write(std::string_view kind, std::string_view text);

  void on_evaluation(const EvaluationEvent& event) override;
  void on_save(const SaveResult& result) override;
  void on_note(const std::string& note) override { write("note", note); }

 private:
  void append(std::string_view lines);

  Disk& disk_;
  Clock& clock_;
  const std::string folder_;
  AppendLog log_;
  Mutex mutex_;  // guards what follows, and appending
  bool begun_ = false;
  std::string kept_;
};

}  // namespace echelon::cli
