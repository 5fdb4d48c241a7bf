#pragma once
// The program's verbs, one file each. A verb adds its flags to the command line and says what to do when it is called;
// it prints to stdout, throws BadInput for what the user can cure and anything else for what went wrong at run time
// (main.cpp turns these into exit codes 2 and 1).

#include <CLI/CLI.hpp>

namespace echelon::cli {

void add_train(CLI::App& program);
void add_check(CLI::App& program);
void add_init(CLI::App& program);
void add_eval(CLI::App& program);
void add_predict(CLI::App& program);
void add_sample(CLI::App& program);
void add_runs(CLI::App& program);
void add_data(CLI::App& program);
void add_models(CLI::App& program);
void add_systems(CLI::App& program);
void add_compare(CLI::App& program);
void add_bench(CLI::App& program);
void add_secret(CLI::App& program);
void add_completion(CLI::App& program);

}  // namespace echelon::cli
