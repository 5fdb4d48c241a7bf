// `echelon init`: a first recipe for a data set, with a comment on every line one may want to change.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/verbs.h"
#include "recipe/init.h"

namespace echelon::cli {

void add_init(Verb program) {
  const Verb verb = program.add_subcommand("init", "Write a commented recipe for a data set");
  struct Settings {
    std::string data, kind, file;
    bool json = false;
  };
  auto s = std::make_shared<Settings>();
  verb.add_option("data", s->data, "A known data set (`echelon data list`), or a file or directory").required();
  verb.add_option("--kind", s->kind, "What kind of data the file or directory holds, if that cannot be told by itself");
  verb.add_option("-o,--output", s->file, "Where to write it (default: the terminal); must not exist yet");
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer("Examples:\n  echelon init digits -o my.toml && echelon train my.toml\n  echelon init flowers.csv");
  verb.action([s] {
    const auto disk = make_real_disk();
    const std::string text = initial_recipe(*disk, guess_data(*disk, s->data, s->kind));
    if (!s->file.empty()) {
      if (disk->exists(s->file)) bad_input("{} exists already; name another file with -o", s->file);
      write_file_atomically(*disk, s->file, text);
    }
    if (s->json)
      fmt::print("{}\n", nlohmann::ordered_json{{"file", s->file}, {"recipe", text}}.dump());
    else if (s->file.empty())
      fmt::print("{}", text);
    else
      fmt::print("wrote {}. Next: echelon train {}\n", s->file, s->file);
  });
}

}  // namespace echelon::cli
