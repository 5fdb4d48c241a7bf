// The program: finds the verb, runs it, and turns what it throws into one message and an exit code.
//   0 done    1 failed while running    2 bad input: nothing was changed

#include <cstdio>
#include <exception>

#include "base/error.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
  using namespace echelon;
  CLI::App program{"Echelon trains neural networks on a core, a machine or a cluster.", "echelon"};
  program.require_subcommand(1);
  program.set_version_flag("--version", "echelon 0.1.0");
  program.footer("Try:\n  echelon train recipes/demo.toml\n  echelon VERB --help");
  for (const auto add : {cli::add_train, cli::add_check, cli::add_init, cli::add_eval, cli::add_predict, cli::add_sample,
                         cli::add_runs, cli::add_data, cli::add_models, cli::add_bench, cli::add_completion})
    add(program);
  try {
    program.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& e) {
    const int code = program.exit(e);  // prints the help, or what is wrong with the flags
    return code == 0 ? 0 : 2;
  } catch (const BadInput& e) {
    std::fprintf(stderr, "echelon: %s\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "echelon: %s\n", e.what());
    return 1;
  }
}
