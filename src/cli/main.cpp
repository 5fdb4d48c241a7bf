// The program: finds the verb, runs it, and turns what it throws into one message and an exit code.
//   0 done    1 failed while running    2 bad input: nothing was changed

#include <algorithm>
#include <cstdio>
#include <exception>

#include "base/error.h"
#include "base/text.h"
#include "cli/help/build_facts.h"
#include "cli/verbs.h"
#include "recipe/settings.h"

namespace {

using namespace echelon;

// The command line itself would only say that a verb is required. `at`: where a verb of `called` stands.
void check_verb(cli::Verb parent, const std::string& called, int at, int argc, char** argv) {
  const auto verbs = parent.subcommands();
  if (verbs.empty() || at >= argc || argv[at][0] == '-') return;
  const std::string word = argv[at];
  std::vector<std::string> names;
  for (const cli::Verb verb : verbs) {
    if (verb.name() == word) return check_verb(verb, called + " " + word, at + 1, argc, argv);
    names.push_back(verb.name());
  }
  // `echelon plan RECIPE`: a word that is a path, or unlike every verb, is no verb with a slip in it.
  const bool takes_words = std::ranges::any_of(parent.flags(), &cli::Flag::is_positional);
  if (takes_words && (word.find_first_of("./") != std::string::npos || !nearest(word, names))) return;
  bad_input("there is no verb '{}'{}; `{} --help` lists them", at == 1 ? word : called.substr(8) + " " + word,
            did_you_mean(word, names), called);
}

}  // namespace

int main(int argc, char** argv) {
  cli::CommandLine line("echelon", "Echelon trains neural networks on a core, a machine or a cluster.",
                        cli::version_text());
  const cli::Verb program = line.program();
  program.require_subcommand();
  program.footer("Try:\n  echelon train recipes/demo.toml\n  echelon VERB --help");
  for (const auto add : {cli::add_train,  cli::add_check,  cli::add_init,    cli::add_eval,       cli::add_predict,
                         cli::add_sample, cli::add_export, cli::add_import,  cli::add_serve,      cli::add_runs,
                         cli::add_data,   cli::add_models, cli::add_systems, cli::add_plan,       cli::add_compare,
                         cli::add_board,  cli::add_ctl,    cli::add_join,    cli::add_leave,      cli::add_status,
                         cli::add_bench,  cli::add_secret, cli::add_doctor,  cli::add_completion, cli::add_man})
    add(program);
  line.explain_settings([](const std::string& word) { return setting_named(word, setting_names()); });
  try {
    check_verb(program, "echelon", 1, argc, argv);
    return line.run(argc, argv);
  } catch (const BadInput& e) {
    std::fprintf(stderr, "echelon: %s\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "echelon: %s\n", e.what());
    return 1;
  }
}
