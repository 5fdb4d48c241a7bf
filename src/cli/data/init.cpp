// `echelon init`: a first recipe for a data set, with a comment on every line one may want to change.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/runs/run_table.h"
#include "cli/verbs.h"
#include "recipe/init.h"

namespace echelon::cli {

namespace {

// "houses.toml" for houses.csv, ../houses.csv.gz and houses/, in the folder where the program was called: that is where
// paths in a recipe begin, and where its runs will lie.
std::string recipe_name_for(const std::string& data) {
  std::filesystem::path path = std::filesystem::path(data).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // houses/
  if (path.extension() == ".gz") path = path.stem();
  const std::string stem = path.stem().string();
  return (stem.find_first_not_of('.') == std::string::npos ? "recipe" : stem) + ".toml";
}

}  // namespace

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
  verb.add_option("-o,--output", s->file,
                  "Where to write it (default: the data's name with .toml, here; - for the terminal); "
                  "must not exist yet");
  verb.add_flag("--json", s->json, "Print one JSON object");
  verb.footer(
      "Examples:\n  echelon init houses.csv && echelon train houses.toml\n"
      "  echelon init houses.csv --label price --ignore id -o prices.toml\n"
      "  echelon init digits -o -");
  verb.action([s] {
    const auto disk = make_real_disk();
    const bool terminal = s->file == "-";
    const std::string file = terminal ? "" : s->file.empty() ? recipe_name_for(s->data) : s->file;
    Options data = guess_data(*disk, s->data, s->kind);
    const auto add = [&](const char* key, const std::vector<std::string>& words) {
      Option::List list;
      for (const std::string& word : words) list.push_back({word, {}});
      if (!list.empty()) data.items[key].value = std::move(list);
    };
    add("label", s->labels), add("ignore", s->ignore);
    const std::string text = initial_recipe(*disk, std::move(data));
    if (!terminal) {
      if (disk->exists(file)) bad_input("{} exists already; name another file with -o, or - for the terminal", file);
      write_named_file(*disk, file, text);
    }
    if (s->json)
      fmt::print("{}\n", nlohmann::ordered_json{{"file", file}, {"recipe", text}}.dump());
    else if (terminal)
      fmt::print("{}", text);
    else
      fmt::print("wrote {}. Next: echelon train {}\n", file, shell_quoted(file));
  });
}

}  // namespace echelon::cli
