#pragma once
// Options as people write them (a recipe's tables, a layer's attributes), without the file format they came in.
// `Options` is a plain tree that remembers the line of every key. `OptionReader` reads one table of it: typed, with
// defaults and bounds; whatever is wrong is added to `Problems` (with line and cure) and reading goes on with the
// default, so that one run of a check reports everything at once. Not thread-safe.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace echelon {

struct Option;

struct Options {
  std::map<std::string, Option> items;
  std::string where;  // the table's name for messages: "optim", "model.layers[3]"
  int line = 0;       // 0: not from a file
};

struct Option {
  std::variant<bool, std::int64_t, double, std::string, std::vector<Option>, std::shared_ptr<Options>> value;
  int line = 0;
};

class Problems {
 public:
  void add(int line, std::string text);  // line 0: no line is named
  bool empty() const { return list_.empty(); }
  struct Problem {
    int line;
    std::string text;
  };
  const std::vector<Problem>& list() const { return list_; }
  // BadInput naming `file` and every problem, in the order of lines, if there is any.
  void throw_if_any(const std::string& file) const;

 private:
  std::vector<Problem> list_;
};

class OptionReader {
 public:
  OptionReader(const Options& options, Problems& problems) : options_(options), problems_(problems) {}

  bool has(const std::string& key) const;
  std::int64_t integer(const std::string& key, std::int64_t fallback, std::int64_t least, std::int64_t most);
  double number(const std::string& key, double fallback, double least, double most);  // takes whole numbers too
  bool flag(const std::string& key, bool fallback);
  std::string text(const std::string& key, const std::string& fallback);
  std::string choice(const std::string& key, const std::string& fallback, const std::vector<std::string>& allowed);
  std::vector<std::int64_t> integers(const std::string& key, const std::vector<std::int64_t>& fallback);  // or one
  std::vector<std::string> texts(const std::string& key, const std::vector<std::string>& fallback);      // or one
  OptionReader table(const std::string& key);                // an empty one if absent
  std::vector<OptionReader> tables(const std::string& key);  // an array of tables
  // Says that `key` must be there; false (and a problem) if it is not.
  bool require(const std::string& key, std::string_view why);

  int line(const std::string& key) const;  // of the key, else of the table
  const std::string& where() const { return options_.where; }
  const Options& options() const { return options_; }
  Problems& problems() { return problems_; }
  void problem(const std::string& key, std::string text);
  // Call last: every key that nobody read is a problem, with the nearest known key as its cure.
  void done();

 private:
  const Option* find(const std::string& key);

  const Options& options_;
  Problems& problems_;
  std::map<std::string, bool> known_;  // every key that was asked for
};

}  // namespace echelon
