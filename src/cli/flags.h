#pragma once
// The command line: verbs, their options and flags, and what runs when a verb is called. A thin cover over CLI11, whose
// headers take longer to compile than all verbs together: only flags.cpp includes them.
//
// Verb and Flag are handles: a copy means the same verb or flag, which lives as long as the CommandLine. The
// variables that a flag fills must live as long, too. Names are "--batch", "-o,--output", or "recipe" for an
// argument without dashes. Not thread-safe: a command line is put together and read by one thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace echelon::cli {

// An option with a value (--batch 64), a switch (--json) or an argument (recipe) of a verb. Setters return the flag, so
// that calls can be chained.
class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}

  Flag required() const;
  Flag show_default() const;              // the help prints what the variable holds now
  Flag range(int least, int most) const;  // refused outside of these limits
  Flag range(double least, double most) const;
  Flag not_negative() const;
  Flag one_of(std::vector<std::string> words) const;
  Flag separated_by(char c) const;             // for lists: --bytes 4096,1M
  Flag one_each_time() const;                  // for lists: --set a=1 --set b=2, never --set a=1 b=2
  Flag exactly(int values) const;              // for lists
  Flag group(const std::string& title) const;  // under which the help prints it

  // What the user gave; known when a verb's action runs.
  bool given() const;
  std::vector<std::string> values() const;      // as they were written
  bool is_switch() const;                       // takes no value
  bool is_positional() const;                   // an argument without dashes
  std::string name() const;                     // "--batch", or "recipe"
  std::vector<std::string> long_names() const;  // "--workers", "--nproc-per-node"
  // As the help says them.
  std::vector<std::string> short_names() const;  // "-o"
  std::string about() const;
  std::string value_name() const;    // "TEXT", "INT:1 to 1024"; empty for a switch
  std::string default_text() const;  // empty if none is shown
  std::string title() const;         // of the group it stands in
  bool is_required() const;

  bool operator==(const Flag&) const = default;

 private:
  CLI::Option* option_;
};

// A verb, a part of one (`data get`), or the whole program.
class Verb {
 public:
  explicit Verb(CLI::App* app) : app_(app) {}

  Verb add_subcommand(const std::string& name, const std::string& about) const;
  void require_subcommand(int least = 1, int most = 1) const;

  Flag add_option(const std::string& names, int& value, const std::string& about) const;
  Flag add_option(const std::string& names, std::int64_t& value, const std::string& about) const;
  Flag add_option(const std::string& names, std::uint64_t& value, const std::string& about) const;
  Flag add_option(const std::string& names, double& value, const std::string& about) const;
  Flag add_option(const std::string& names, std::string& value, const std::string& about) const;
  Flag add_option(const std::string& names, std::vector<std::string>& values, const std::string& about) const;
  // Hands over what was written, to be read by `take`, which may throw BadInput.
  Flag add_text(const std::string& names, std::function<void(const std::string&)> take, const std::string& about) const;
  Flag add_texts(const std::string& names, std::function<void(const std::vector<std::string>&)> take,
                 const std::string& about) const;
  Flag add_flag(const std::string& names, bool& value, const std::string& about) const;
  // A switch that may also be given a word: "auto" for --resume=auto, "true" for --resume.
  Flag add_flag(const std::string& names, std::string& word, const std::string& about) const;

  void footer(const std::string& text) const;  // below the help: examples
  void action(std::function<void()> run) const;

  bool called() const;  // among the words of this command line
  std::string name() const;
  std::string about() const;
  std::string footer() const;
  std::vector<Verb> subcommands() const;
  std::vector<Flag> flags() const;

 private:
  CLI::App* app_;
};

// Thrown by a verb that has already printed everything: the program ends with this code and says no more.
struct EndWith {
  int code;
};

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& about, const std::string& version);
  ~CommandLine();

  Verb program() const { return Verb(app_.get()); }

  // What a flag that no verb has is called as a setting of a recipe: "train.epochs" for "epochs"; empty if it is none.
  // Asked for verbs that take --set.
  void explain_settings(std::function<std::string(const std::string& word)> find) { find_setting_ = std::move(find); }

  // Reads the words, runs the action of the verb that was called, and returns the exit code: 0; 2 after printing what
  // is wrong with the flags; or that of EndWith. What else a verb throws passes through. BadInput for words that the
  // verb does not know, with the nearest that it does.
  int run(int argc, char** argv);

 private:
  std::string explain_extras() const;

  std::function<std::string(const std::string&)> find_setting_;
  std::unique_ptr<CLI::App> app_;
};

}  // namespace echelon::cli
