// `echelon init`: a first recipe for a data set, with a comment on every line one may want to change.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/run_table.h"
#include "cli/verbs.h"
#include "recipe/init.h"

namespace echelon::cli {

void add_init(Verb program) {
  const Verb verb = program.add_subcommand("init", "Write a commented recipe for a data set");
  struct Settings {
    std::string data, kind, file;
    std::vector<std::string> labels, ignore;
    bool json = false;
  };
  auto s = std::make_shared<Settings>();
  verb.add_option("data", s->data, "A known data set (`echelon data list`), or a file or directory").required();
  verb.add_option("--kind", s->kind, "What kind of data the file or directory holds, if that cannot be told by itself");
  verb.add_option("--label", s->labels, "Of a table: the column to predict; several: --label a,b").separated_by(',');
  verb.add_option("--ignore", s->ignore, "Of a table: columns to leave out, with commas between them")
      .separated_by(',');
  verb.add_option("-o,--output", s->file, "Where to write it (default: the terminal); must not exist yet");
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer(
      "Examples:\n  echelon init digits -o my.toml && echelon train my.toml\n  echelon init houses.csv --label price "
      "--ignore id -o houses.toml");
  verb.action([s] {
    const auto disk = make_real_disk();
    Options data = guess_data(*disk, s->data, s->kind);
    const auto add = [&](const char* key, const std::vector<std::string>& words) {
      Option::List list;
      for (const std::string& word : words) list.push_back({word, {}});
      if (!list.empty()) data.items[key].value = std::move(list);
    };
    add("label", s->labels), add("ignore", s->ignore);
    const std::string text = initial_recipe(*disk, std::move(data));
    if (!s->file.empty()) {
      if (disk->exists(s->file)) bad_input("{} exists already; name another file with -o", s->file);
      write_named_file(*disk, s->file, text);
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
