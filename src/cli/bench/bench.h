#pragma once
// The parts of `echelon bench`.

#include "cli/flags.h"

namespace echelon::cli {

void add_bench_train(Verb bench);
void add_bench_predict(Verb bench);
void add_bench_collective(Verb bench);

}  // namespace echelon::cli
