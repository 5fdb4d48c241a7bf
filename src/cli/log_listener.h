#pragma once
// logs/rank_N.log of a run: one line for everything worth one, with its time in UTC, so that the story of the run can
// be read later: how it was started, what it is, evaluations, saves, notes, how it ended. A resumed run goes on in the
// same file.
//
//   2026-11-15 22:44:08.123 note   resuming after step 70 of 190
//
// A disk that refuses costs lines, never the run. Tasks may write at the same time.

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
  // `kind` is a word such as "start"; each line of `text` becomes a line.
  void write(std::string_view kind, std::string_view text);

  void on_evaluation(const EvaluationEvent& event) override;
  void on_save(const SaveResult& result) override;
  void on_note(const std::string& note) override { write("note", note); }

 private:
  Clock& clock_;
  AppendLog log_;
  Mutex mutex_;  // to append
};

}  // namespace echelon::cli
