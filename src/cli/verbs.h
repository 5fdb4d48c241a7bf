#pragma once
// The program's verbs, one file each. A verb adds its flags to the command line and says what to do when it is called;
// it prints to stdout, throws BadInput for what the user can cure and anything else for what went wrong at run time
// (main.cpp turns these into exit codes 2 and 1).

#include "cli/flags.h"

namespace echelon::cli {

void add_train(Verb program);
void add_check(Verb program);
void add_init(Verb program);
void add_eval(Verb program);
void add_predict(Verb program);
void add_sample(Verb program);
void add_export(Verb program);
void add_import(Verb program);
void add_serve(Verb program);
void add_runs(Verb program);
void add_runs_registry(Verb runs);  // parts of it
void add_runs_archive(Verb runs);
void add_runs_explain(Verb runs);
void add_data(Verb program);
void add_data_tokens(Verb data);  // parts of it
void add_data_show(Verb data);
void add_models(Verb program);
void add_models_registry(Verb models);  // parts of it
void add_systems(Verb program);
void add_plan(Verb program);
void add_compare(Verb program);
void add_board(Verb program);
void add_ctl(Verb program);
void add_join(Verb program);
void add_leave(Verb program);
void add_status(Verb program);
void add_bench(Verb program);
void add_secret(Verb program);
void add_doctor(Verb program);
void add_completion(Verb program);
void add_man(Verb program);

}  // namespace echelon::cli
