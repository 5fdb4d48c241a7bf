#pragma once
// Options as people write them (a recipe's tables, a layer's attributes), without the file format they came in.
// `Options` is a plain tree that remembers where every key was written. `OptionReader` reads one table of it: typed,
// with defaults and bounds; whatever is wrong is added to `Problems` (with place and cure) and reading goes on with the
// default, so that one run of a check reports everything at once. Not thread-safe.

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace echelon {

// Where something was written. An empty file is the one that the reader of the message is looking at; line 0 is no
// particular line. An override on the command line has its own words as the file: "--set optim.lr=0.05".
struct Place {
  Place(int line = 0, std::string file = "") : line(line), file(std::move(file)) {}  // NOLINT: a line is a place
  int line;
  std::string file;
};

struct Option;

struct Options {
  std::map<std::string, Option> items;
  std::string where;  // the table's name for messages: "optim", "model.layers[3]"; empty for the outermost
  Place place = {};
};

struct Option {
  using List = std::vector<Option>;
  using Table = std::shared_ptr<Options>;
  std::variant<bool, std::int64_t, double, std::string, List, Table> value;
  Place place = {};
};

// As TOML writes it, for messages: 3, 0.5, "text", [1, 2]; a table is "a table".
std::string to_text(const Option& option);

class Problems {
 public:
  struct Problem {
    Place place;
    std::string text;
  };
  void add(Place place, std::string text);
  bool empty() const { return list_.empty(); }
  const std::vector<Problem>& list() const { return list_; }
  // One line for each problem, "file:line: text" in the order of files and lines; `file` stands for empty ones.
  std::string text(const std::string& file) const;
  // BadInput naming `file` and every problem, if there is any.
  void throw_if_any(const std::string& file) const;

 private:
  std::vector<Problem> list_;
};

class OptionReader {
 public:
  static constexpr std::int64_t no_least = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t no_most = std::numeric_limits<std::int64_t>::max();
  static constexpr double infinite = std::numeric_limits<double>::infinity();

  // Both must outlive the reader and those that it hands out.
  OptionReader(const Options& options, Problems& problems);

  bool has(const std::string& key) const;
  std::int64_t integer(const std::string& key, std::int64_t fallback, std::int64_t least = no_least,
                       std::int64_t most = no_most);
  // Takes whole numbers too; never a NaN.
  double number(const std::string& key, double fallback, double least = -infinite, double most = infinite);
  bool flag(const std::string& key, bool fallback);
  std::string text(const std::string& key, const std::string& fallback);
  std::string choice(const std::string& key, const std::string& fallback, const std::vector<std::string>& allowed);
  // Lists; one value alone is a list of one.
  std::vector<std::int64_t> integers(const std::string& key, const std::vector<std::int64_t>& fallback,
                                     std::int64_t least = no_least, std::int64_t most = no_most);
  std::vector<double> numbers(const std::string& key, const std::vector<double>& fallback, double least = -infinite,
                              double most = infinite);
  std::vector<std::string> texts(const std::string& key, const std::vector<std::string>& fallback);
  OptionReader table(const std::string& key);                // an empty one if absent
  std::vector<OptionReader> tables(const std::string& key);  // an array of tables
  // Says that `key` must be there; false (and a problem) if it is not.
  bool require(const std::string& key, std::string_view why);
  // Counts `key` as read, whatever it holds: somebody else reads it.
  void ignore(const std::string& key);

  Place place(const std::string& key) const;  // of the key, else of the table
  int line(const std::string& key) const { return place(key).line; }
  const std::string& where() const { return options_->where; }
  std::string name(const std::string& key) const;  // the key with its table: "optim.lr"
  const Options& options() const { return *options_; }
  Problems& problems() { return *problems_; }
  // Adds "optim.lr TEXT" at the key's place.
  void problem(const std::string& key, std::string_view text);
  // Every key that was asked for so far, with what it is where nobody says anything; nothing for tables, and for keys
  // that were only looked at.
  const std::map<std::string, std::optional<Option>>& asked() const { return asked_; }
  // Call last: every key that nobody read is a problem, with the nearest known key as its cure.
  void done();

 private:
  OptionReader(std::shared_ptr<const Options> options, Problems* problems);
  const Option* find(const std::string& key, std::optional<Option> fallback = {});
  void wrong(const std::string& key, const Option& found, const std::string& wanted);

  std::shared_ptr<const Options> options_;
  Problems* problems_;
  std::map<std::string, std::optional<Option>> asked_;
};

}  // namespace echelon
