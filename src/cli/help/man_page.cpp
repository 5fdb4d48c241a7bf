#include "cli/help/man_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/help/version.h"

namespace echelon::cli {

namespace {

// Text as roff takes it literally. A hyphen stays one that can be copied into a shell.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '\'': out += "\\(aq"; break;
      case '`': out += "\\(ga"; break;
      case '^': out += "\\(ha"; break;
      case '~': out += "\\(ti"; break;
      default: out += c;
    }
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string heading(std::string_view title) { return fmt::format(".SH {}\n", roff(title)); }

// "-o, --output TEXT"
std::string spelling(const Flag& flag) {
  if (flag.is_positional()) return italic(flag.name());
  std::string out;
  for (const auto& names : {flag.short_names(), flag.long_names()})
    for (const std::string& name : names) out += (out.empty() ? "" : ", ") + bold(name);
  return out + (flag.value_name().empty() ? "" : " " + italic(flag.value_name()));
}

std::string entry(const Flag& flag) {
  std::string about = flag.about();
  if (!flag.default_text().empty()) about += fmt::format(" (default: {})", flag.default_text());
  if (flag.is_required()) about += " (required)";
  return fmt::format(".TP\n{}\n{}\n", spelling(flag), roff(about));
}

// The flags by the title under which the help has them, arguments first.
std::string entries(Verb verb, bool parts_of_a_verb) {
  std::vector<std::string> titles;
  for (const Flag& flag : verb.flags())
    if (!flag.is_positional() && std::ranges::find(titles, flag.title()) == titles.end())
      titles.push_back(flag.title());
  const auto title = [&](const std::string& text) {
    std::string capitals = text;
    std::ranges::transform(capitals, capitals.begin(), [](unsigned char c) { return std::toupper(c); });
    return parts_of_a_verb ? "" : heading(capitals);
  };
  std::string arguments, out;
  for (const Flag& flag : verb.flags())
    if (flag.is_positional()) arguments += entry(flag);
  if (!arguments.empty()) out += title("Arguments") + arguments;
  for (const std::string& group : titles) {
    out += title(group);
    for (const Flag& flag : verb.flags())
      if (!flag.is_positional() && flag.title() == group) out += entry(flag);
  }
  return out;
}

std::string synopsis(Verb verb, const std::string& path) {
  std::string out = bold(path);
  for (const Flag& flag : verb.flags())
    if (flag.is_positional())
      out += flag.is_required() ? " " + italic(flag.name()) : fmt::format(" [{}]", italic(flag.name()));
  if (!verb.subcommands().empty()) return fmt::format("{} {} ...", out, italic("VERB"));
  return out + fmt::format(" [{}]", italic("OPTIONS"));
}

// What stands below the help: "Examples:" and lines to copy, which stay as they are.
std::string footer(Verb verb, bool part_of_a_verb) {
  std::string out;
  bool verbatim = false;
  const auto close = [&] { out += verbatim ? ".EE\n" : "", verbatim = false; };
  const std::string text = verb.footer();
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with("  ")) {
      if (!verbatim) out += ".EX\n", verbatim = true;
      out += roff(line) + "\n";
      continue;
    }
    close();
    const bool title = line.ends_with(':') && line.find(' ') == std::string_view::npos;
    if (title && !part_of_a_verb && line.starts_with("Example"))
      out += heading("EXAMPLES");
    else if (!line.empty())
      out += ".PP\n" + roff(line) + "\n";
  }
  close();
  return out;
}

std::string begin(const std::string& name, const std::string& about) {
  std::string capitals = name;
  std::ranges::transform(capitals, capitals.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(".TH {} 1 \"\" \"{}\" \"Echelon\"\n", roff(capitals), version) + heading("NAME") + roff(name) +
         " \\- " + roff(about) + "\n";
}

void add_parts(Verb verb, const std::string& path, std::string& out) {
  for (const Verb part : verb.subcommands()) {
    const std::string name = path + " " + part.name();
    out += fmt::format(".SS {}\n{}\n", synopsis(part, name), roff(part.about() + "."));
    out += entries(part, true) + footer(part, true);
    add_parts(part, name, out);
  }
}

std::string end(const std::string& see) {
  return heading("EXIT STATUS") + "0: done. 1: failed while running. 2: bad input; nothing was changed on disk.\n" +
         heading("SEE ALSO") + see;
}

ManPage page_of(Verb verb) {
  const std::string path = "echelon " + verb.name();
  ManPage page{"echelon-" + verb.name(), begin("echelon-" + verb.name(), verb.about())};
  page.text += heading("SYNOPSIS") + synopsis(verb, path) + "\n";
  page.text += entries(verb, false);
  if (!verb.subcommands().empty()) page.text += heading("VERBS");
  add_parts(verb, path, page.text);
  page.text += footer(verb, false) + end(".BR echelon (1)\n");
  return page;
}

ManPage page_of_program(Verb program) {
  ManPage page{"echelon", begin("echelon", program.about())};
  page.text += heading("SYNOPSIS") + synopsis(program, "echelon") + "\n" + entries(program, false) + heading("VERBS");
  std::string see;
  for (const Verb verb : program.subcommands()) {
    page.text += fmt::format(".TP\n{}\n{}\n", bold(verb.name()), roff(verb.about()));
    see += fmt::format("{}.BR echelon\\-{} (1)", see.empty() ? "" : ",\n", roff(verb.name()));
  }
  page.text += footer(program, false) + end(see + "\n");
  return page;
}

}  // namespace

std::vector<ManPage> man_pages(Verb program) {
  std::vector<ManPage> pages{page_of_program(program)};
  for (const Verb verb : program.subcommands()) pages.push_back(page_of(verb));
  return pages;
}

}  // namespace echelon::cli
