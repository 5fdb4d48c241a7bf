#include "cli/flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace echelon::cli {

namespace {

template <class T>
Flag bind(CLI::App& app, const std::string& names, T& value, const std::string& about) {
  return Flag(app.add_option(names, value, about));
}

template <class T>
Flag within(CLI::Option* option, T least, T most, const char* kind) {
  const std::string range = fmt::format("{} to {}", least, most);
  return Flag(option->check(
      [=](const std::string& text) {
        T value{};
        const bool read = CLI::detail::lexical_cast(text, value);
        return read && value >= least && value <= most ? ""
                                                       : fmt::format("takes {} from {}, not '{}'", kind, range, text);
      },
      range));
}

// What is wrong with the values that a verb was given, a line each.
std::vector<std::string> complaints_about(CLI::App& verb) {
  std::vector<std::string> all;
  for (CLI::Option* option : verb.get_options())
    for (std::string text : option->results()) {
      std::string wrong;
      for (int i = 0; wrong.empty(); ++i) try {
          wrong = (*option->get_validator(i))(text);
        } catch (const CLI::OptionNotFound&) {  // that was the last one
          break;
        }
      const std::string type = option->get_type_name();
      std::int64_t whole = 0;
      double number = 0;
      if (wrong.empty() && (type.starts_with("INT") || type.starts_with("UINT")) &&
          !CLI::detail::lexical_cast(text, whole))
        wrong = fmt::format("takes a whole number, not '{}'", text);
      if (wrong.empty() && type.starts_with("FLOAT") && !CLI::detail::lexical_cast(text, number))
        wrong = fmt::format("takes a number, not '{}'", text);
      if (!wrong.empty()) all.push_back(fmt::format("{}: {}", option->get_name(option->get_positional()), wrong));
    }
  return all;
}

// The words of a command line that nobody has taken, and the verb that was called with them.
struct Extras {
  const CLI::App* verb;
  std::vector<std::string> words;
};

Extras extras_of(const CLI::App& program) {
  const CLI::App* verb = &program;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  return {verb, program.remaining(true)};
}

std::string path_of(const CLI::App* verb) {
  return (verb->get_parent() ? path_of(verb->get_parent()) + " " : "") + verb->get_name();
}

}  // namespace

Flag Flag::required() const { return Flag(option_->required()); }
Flag Flag::show_default() const { return Flag(option_->capture_default_str()); }
Flag Flag::range(int least, int most) const { return within(option_, least, most, "a whole number"); }
Flag Flag::range(double least, double most) const { return within(option_, least, most, "a number"); }
Flag Flag::not_negative() const {
  const auto check = [](const std::string& text) {
    double value = 0;
    return CLI::detail::lexical_cast(text, value) && value >= 0
               ? ""
               : fmt::format("takes a number from 0 on, not '{}'", text);
  };
  return Flag(option_->check(check, "0 or more"));
}
Flag Flag::one_of(std::vector<std::string> words) const {
  const std::string list = fmt::format("{{{}}}", fmt::join(words, ","));
  const auto check = [words = std::move(words)](const std::string& text) {
    if (std::ranges::find(words, text) != words.end()) return std::string();
    const auto begun = [&](const std::string& word) { return !text.empty() && word.starts_with(text); };
    const auto whole = std::ranges::find_if(words, begun);
    return fmt::format("takes one of {}, not '{}'{}", fmt::join(words, ", "), text,
                       whole == words.end() ? did_you_mean(text, words) : fmt::format("; did you mean '{}'?", *whole));
  };
  return Flag(option_->check(check, list));
}
Flag Flag::separated_by(char c) const { return Flag(option_->delimiter(c)); }
Flag Flag::one_each_time() const { return Flag(option_->allow_extra_args(false)); }
Flag Flag::exactly(int values) const { return Flag(option_->expected(values)); }
Flag Flag::group(const std::string& title) const { return Flag(option_->group(title)); }

bool Flag::given() const { return option_->count() > 0; }
std::vector<std::string> Flag::values() const { return option_->results(); }
bool Flag::is_switch() const { return option_->get_items_expected_max() == 0; }
bool Flag::is_positional() const { return option_->get_positional(); }
std::string Flag::name() const { return option_->get_name(option_->get_positional()); }
std::vector<std::string> Flag::long_names() const {
  std::vector<std::string> names;
  for (const std::string& name : option_->get_lnames()) names.push_back("--" + name);
  return names;
}
std::vector<std::string> Flag::short_names() const {
  std::vector<std::string> names;
  for (const std::string& name : option_->get_snames()) names.push_back("-" + name);
  return names;
}
std::string Flag::about() const { return option_->get_description(); }
std::string Flag::value_name() const { return is_switch() ? "" : option_->get_type_name(); }
std::string Flag::default_text() const { return option_->get_default_str(); }
std::string Flag::title() const { return option_->get_group(); }
bool Flag::is_required() const { return option_->get_required(); }

Verb Verb::add_subcommand(const std::string& name, const std::string& about) const {
  return Verb(app_->add_subcommand(name, about));
}
void Verb::require_subcommand(int least, int most) const {
  app_->require_subcommand(static_cast<std::size_t>(least), static_cast<std::size_t>(most));
}

Flag Verb::add_option(const std::string& names, int& value, const std::string& about) const {
  return bind(*app_, names, value, about);
}
Flag Verb::add_option(const std::string& names, std::int64_t& value, const std::string& about) const {
  return bind(*app_, names, value, about);
}
Flag Verb::add_option(const std::string& names, std::uint64_t& value, const std::string& about) const {
  return bind(*app_, names, value, about);
}
Flag Verb::add_option(const std::string& names, double& value, const std::string& about) const {
  return bind(*app_, names, value, about);
}
Flag Verb::add_option(const std::string& names, std::string& value, const std::string& about) const {
  return bind(*app_, names, value, about);
}
Flag Verb::add_option(const std::string& names, std::vector<std::string>& values, const std::string& about) const {
  return bind(*app_, names, values, about);
}
Flag Verb::add_text(const std::string& names, std::function<void(const std::string&)> take,
                    const std::string& about) const {
  return Flag(app_->add_option_function<std::string>(names, std::move(take), about));
}
Flag Verb::add_texts(const std::string& names, std::function<void(const std::vector<std::string>&)> take,
                     const std::string& about) const {
  return Flag(app_->add_option_function<std::vector<std::string>>(names, std::move(take), about));
}
Flag Verb::add_flag(const std::string& names, bool& value, const std::string& about) const {
  return Flag(app_->add_flag(names, value, about));
}

Flag Verb::add_flag(const std::string& names, std::string& word, const std::string& about) const {
  return Flag(app_->add_flag(names, word, about));
}

void Verb::footer(const std::string& text) const { app_->footer(text); }
void Verb::action(std::function<void()> run) const { app_->callback(std::move(run)); }

bool Verb::called() const { return app_->parsed(); }
std::string Verb::name() const { return app_->get_name(); }
std::string Verb::about() const { return app_->get_description(); }
std::string Verb::footer() const { return app_->get_footer(); }
std::vector<Verb> Verb::subcommands() const {
  std::vector<Verb> all;
  for (CLI::App* sub : app_->get_subcommands({})) all.emplace_back(sub);
  return all;
}
std::vector<Flag> Verb::flags() const {
  std::vector<Flag> all;
  for (CLI::Option* option : app_->get_options()) all.emplace_back(option);
  return all;
}

CommandLine::CommandLine(const std::string& name, const std::string& about, const std::string& version)
    : app_(std::make_unique<CLI::App>(about, name)) {
  app_->set_version_flag("--version", version);
}

CommandLine::~CommandLine() = default;

std::string CommandLine::explain_extras() const {
  const Extras extras = extras_of(*app_);
  const Verb verb(const_cast<CLI::App*>(extras.verb));  // which it only reads
  std::vector<std::string> known;
  for (const Flag flag : verb.flags())
    for (const std::string& name : flag.long_names()) known.push_back(name);
  const bool has_settings = std::ranges::find(known, "--set") != known.end();
  std::string text;
  for (std::size_t i = 0; i < extras.words.size(); ++i) {
    const std::string& word = extras.words[i];
    text += text.empty() ? "" : "\n";
    if (!word.starts_with('-')) {
      text += fmt::format("`{}` has no place for '{}'", path_of(extras.verb), word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::size_t dashes = std::min(name.find_first_not_of('-'), name.size());
    std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    const std::string setting = has_settings && find_setting_ ? find_setting_(name.substr(dashes)) : "";
    text += fmt::format("`{}` has no flag {}", path_of(extras.verb), name);
    if (setting.empty()) {
      text += did_you_mean(name, known);
      continue;
    }
    if (equals == std::string::npos && i + 1 < extras.words.size() && !extras.words[i + 1].starts_with('-'))
      value = extras.words[++i];
    text += fmt::format("; it is a setting of the recipe: --set {}={}", setting,
                        value.empty() ? "VALUE" : shell_quoted(value));
  }
  return text + fmt::format("\n`{} --help` lists the flags", path_of(extras.verb));
}

int CommandLine::run(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
    return 0;
  } catch (const CLI::ExtrasError&) {
    bad_input("{}", explain_extras());
  } catch (const CLI::RequiredError& e) {
    const CLI::App* verb = extras_of(*app_).verb;
    if (verb->get_require_subcommand_min() == 0)
      bad_input("`{0}`: {1}; `{0} --help` has examples", path_of(verb), e.what());
    std::vector<std::string> names;
    for (const CLI::App* sub : verb->get_subcommands({})) names.push_back(sub->get_name());
    bad_input("`{0}` needs a verb: {1}; `{0} --help` says what each does", path_of(verb), fmt::join(names, ", "));
  } catch (const CLI::ParseError& e) {
    const Extras extras = extras_of(*app_);
    auto complaints = complaints_about(const_cast<CLI::App&>(*extras.verb));  // which it only reads
    if (complaints.empty()) return app_->exit(e) == 0 ? 0 : 2;                // prints the help, or what is wrong
    if (!extras.words.empty()) complaints.push_back(explain_extras());
    bad_input("{}", fmt::join(complaints, "\n"));
  } catch (const EndWith& end) {
    return end.code;
  }
}

}  // namespace echelon::cli
