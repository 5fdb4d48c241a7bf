#pragma once
// The question language of `echelon runs find` and of the page's filter:
//
//   test_accuracy > 0.98 and (optim.lr < 0.1 or not model.name = "lenet5") order by seconds desc limit 10
//
// A name is a setting of the recipe (optim.lr), a result (test_accuracy, seconds), or one of name, model, state,
// started, tag, note, star. Operators: = != < <= > >= and ~ (contains, whatever the case). A name alone is true if the
// run has it. Values are never put into SQL: they, and the names, are bound.
//
// Pure functions; BadInput with the place and the cure for what is no question.

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace echelon {

struct CompiledQuery {
  std::string where = "1";  // an SQL expression over `runs` with question marks
  std::string order = "";   // "ORDER BY ..."; its names are bound after those of `where`
  std::vector<std::variant<double, std::string>> values;
  std::vector<std::string> names;  // that it asks for
  std::int64_t limit = -1;         // -1: all
};

inline constexpr std::size_t longest_query = 4096;

CompiledQuery compile_query(std::string_view text);

}  // namespace echelon
