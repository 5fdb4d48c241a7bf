#pragma once
// The parts of `echelon bench`.

#include <CLI/CLI.hpp>

namespace echelon::cli {

void add_bench_train(CLI::App& bench);
void add_bench_collective(CLI::App& bench);

}  // namespace echelon::cli
