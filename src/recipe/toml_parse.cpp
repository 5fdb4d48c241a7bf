// A malformed text can break what the library asserts; it then reports an error all the same, as it should here.
#define TOML_ASSERT(condition) static_assert(true)
#include <toml++/toml.h>

#include "base/error.h"
#include "recipe/toml.h"

namespace echelon {

namespace {

// The library bounds the nesting of brackets, but "a.a.a.a" nests too, without a bound, and taking such a tree down
// again costs stack for every level. No honest file has this many dots outside its comments.
constexpr std::size_t most_dots = 4096;

void check_size(std::string_view text, const std::string& file, const TomlLimits& limits) {
  if (text.size() > limits.bytes)
    bad_input("{}: has {} bytes; a recipe has at most {}", file, text.size(), limits.bytes);
  std::size_t dots = 0;
  bool line_start = true, comment = false;
  for (const char c : text) {
    if (c == '\n') {
      line_start = true, comment = false;
    } else if (line_start && c != ' ' && c != '\t') {
      line_start = false, comment = c == '#';
    }
    dots += c == '.' && !comment;
  }
  if (dots > most_dots) bad_input("{}: has more than {} dots; that is no recipe", file, most_dots);
}

class Converter {
 public:
  Converter(const std::string& file, const TomlLimits& limits) : file_(file), limits_(limits) {}

  Options table(const toml::table& from, const std::string& where, int depth) {
    Options to;
    to.where = where;
    to.place = place(from);
    for (const auto& [key, node] : from) {
      const std::string name(key.str());
      Option option = value(node, where.empty() ? name : fmt::format("{}.{}", where, name), depth);
      option.place = Place(static_cast<int>(key.source().begin.line), file_);
      if (auto* table = std::get_if<Option::Table>(&option.value); table && (*table)->place.line == 0)
        (*table)->place = option.place;  // a table that only dotted keys speak of has no line of its own
      to.items.emplace(name, std::move(option));
    }
    return to;
  }

 private:
  Place place(const toml::node& node) const { return Place(static_cast<int>(node.source().begin.line), file_); }

  Option value(const toml::node& node, const std::string& where, int depth) {
    const Place at = place(node);
    if (++values_ > limits_.values) bad_input("{}:{}: has more than {} values", file_, at.line, limits_.values);
    if (depth >= limits_.depth) bad_input("{}:{}: nested deeper than {} levels", file_, at.line, limits_.depth);
    if (const auto* v = node.as_boolean()) return {v->get(), at};
    if (const auto* v = node.as_integer()) return {v->get(), at};
    if (const auto* v = node.as_floating_point()) return {v->get(), at};
    if (const auto* v = node.as_string()) return {v->get(), at};
    if (const auto* v = node.as_table()) return {std::make_shared<Options>(table(*v, where, depth + 1)), at};
    if (const auto* v = node.as_array()) {
      Option::List list;
      for (const toml::node& element : *v)
        list.push_back(value(element, fmt::format("{}[{}]", where, list.size()), depth + 1));
      return {std::move(list), at};
    }
    bad_input("{}:{}: {} is a date or time; no option is one: put it in quotes to make it a text", file_, at.line,
              where);
  }

  const std::string& file_;
  const TomlLimits& limits_;
  std::size_t values_ = 0;
};

}  // namespace

Options parse_toml(std::string_view text, const std::string& file, const TomlLimits& limits) {
  check_size(text, file, limits);
  try {
    const toml::table table = toml::parse(text, file);
    Options options = Converter(file, limits).table(table, "", 0);
    options.place = Place(0, file);
    return options;
  } catch (const toml::parse_error& e) {
    bad_input("{}:{}: {}", file, e.source().begin.line, e.description());
  }
}

}  // namespace echelon
