#pragma once
// What the workers of a run do now, or did last: for `echelon status RUN` and `echelon doctor RUN`.

#include <string>

#include "base/json.h"
#include "run/health/diagnosis.h"

namespace echelon::cli {

// Looks twice, half a second apart, if the run goes on.
void show_status(const std::string& folder, bool json);

// After a crash: the last events of every rank, what went wrong in the run, and what ended it.
void show_autopsy(const std::string& folder, bool json);

}  // namespace echelon::cli
