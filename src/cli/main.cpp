// The program: finds the verb, runs it, and turns what it throws into one message and an exit code.
//   0 done    1 failed while running    2 bad input: nothing was changed

#include <algorithm>
#include <cstdio>
#include <exception>

#include "base/error.h"
#include "base/text.h"
#include "cli/verbs.h"

namespace {

// CLI11 would only say that a subcommand is required.
void check_verb(const CLI::App& program, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> verbs;
  for (const CLI::App* verb : program.get_subcommands({})) verbs.push_back(verb->get_name());
  if (std::ranges::find(verbs, argv[1]) == verbs.end())
    echelon::bad_input("there is no verb '{}'{}; `echelon --help` lists them", argv[1],
                       echelon::did_you_mean(argv[1], verbs));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace echelon;
  CLI::App program{"Echelon trains neural networks on a core, a machine or a cluster.", "echelon"};
  program.require_subcommand(1);
  program.set_version_flag("--version", "echelon 0.1.0");
  program.footer("Try:\n  echelon train recipes/demo.toml\n  echelon VERB --help");
  for (const auto add : {cli::add_train, cli::add_check, cli::add_init, cli::add_eval, cli::add_predict,
                         cli::add_sample, cli::add_runs, cli::add_data, cli::add_models, cli::add_systems,
                         cli::add_compare, cli::add_bench, cli::add_secret, cli::add_completion})
    add(program);
  try {
    check_verb(program, argc, argv);
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
