// `echelon man`: manual pages, made from the command line's own description.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/help/man_page.h"
#include "cli/runs/run_table.h"
#include "cli/verbs.h"
#include "world/os/disk.h"

namespace echelon::cli {

void add_man(Verb program) {
  const Verb verb = program.add_subcommand("man", "Print a manual page, or write all of them");
  struct Settings {
    std::string verb, folder;
    bool json = false;
  };
  auto s = std::make_shared<Settings>();
  verb.add_option("verb", s->verb, "The verb that the page is about (default: the program)");
  verb.add_option("--to", s->folder, "Write all pages into this folder, as NAME.1");
  verb.add_flag("--json", s->json, "Print one JSON object: the page's text, or the files that were written");
  verb.footer(
      "Examples:\n"
      "  echelon man train | man -l -\n"
      "  echelon man --to ~/.local/share/man/man1");
  verb.action([program, s] {
    const std::vector<ManPage> pages = man_pages(program);
    if (!s->folder.empty()) {
      if (!s->verb.empty()) bad_input("--to writes the pages of all verbs; leave out '{}'", s->verb);
      const auto disk = make_real_disk();
      nlohmann::ordered_json files = nlohmann::ordered_json::array();
      try {
        disk->make_directories(s->folder);
      } catch (const DiskError& problem) {
        bad_input("{} cannot be made ({}); name another folder", s->folder, problem.what());
      }
      for (const ManPage& page : pages) {
        files.push_back(s->folder + "/" + page.name + ".1");
        write_named_file(*disk, files.back(), page.text);
      }
      if (s->json)
        fmt::print("{}\n", nlohmann::ordered_json{{"files", files}}.dump());
      else
        fmt::print("wrote {} pages to {}\n", pages.size(), s->folder);
      return;
    }
    std::vector<std::string> names;
    for (const ManPage& page : pages) {
      names.push_back(page.name == "echelon" ? "" : page.name.substr(std::string_view("echelon-").size()));
      if (names.back() != s->verb) continue;
      if (s->json)
        fmt::print("{}\n", nlohmann::ordered_json{{"name", page.name}, {"text", page.text}}.dump());
      else
        fmt::print("{}", page.text);
      return;
    }
    bad_input("there is no verb '{}'{}", s->verb, did_you_mean(s->verb, names));
  });
}

}  // namespace echelon::cli
