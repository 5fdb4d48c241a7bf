#pragma once
// What a request to a served run has: samples as the run's data are before any transform, which is what `predict`
// reads, and for a table its columns, with answers in the units of the table.

#include "cli/answers/loaded_run.h"
#include "serve/batcher.h"

namespace echelon::cli {

// Without `prepare` if requests have what the network reads. The run must outlive the result.
serve::Adapter serve_adapter(const LoadedRun& run);

}  // namespace echelon::cli
