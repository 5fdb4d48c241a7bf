#include "base/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <tuple>

#include "base/error.h"
#include "base/text.h"

namespace echelon {

namespace {

constexpr std::size_t longest_shown = 60;      // of a value in a message
constexpr std::size_t longest_problem = 2000;  // a message that quotes a key of a megabyte helps nobody
constexpr std::size_t most_shown = 50;         // problems in a text

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text.substr(0, longest_shown)) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      out += c;
  }
  return out + (text.size() > longest_shown ? "...\"" : "\"");
}

std::optional<std::int64_t> as_integer(const Option& option) {
  if (const auto* whole = std::get_if<std::int64_t>(&option.value)) return *whole;
  if (const auto* real = std::get_if<double>(&option.value))  // 1e4 is a fine way to write 10000
    if (std::trunc(*real) == *real && std::abs(*real) < 0x1p53) return static_cast<std::int64_t>(*real);
  return {};
}

std::optional<double> as_number(const Option& option) {
  if (const auto* whole = std::get_if<std::int64_t>(&option.value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&option.value); real && !std::isnan(*real)) return *real;
  return {};
}

template <typename T>
std::string range(const char* what, T least, T most, T no_least, T no_most) {
  if (least == no_least && most == no_most) return what;
  if (most == no_most) return fmt::format("{}, at least {}", what, least);
  if (least == no_least) return fmt::format("{}, at most {}", what, most);
  return fmt::format("{} from {} to {}", what, least, most);
}

std::string whole_range(std::int64_t least, std::int64_t most) {
  return range("a whole number", least, most, OptionReader::no_least, OptionReader::no_most);
}

std::string real_range(double least, double most) {
  return range("a number", least, most, -OptionReader::infinite, OptionReader::infinite);
}

}  // namespace

std::string to_text(const Option& option) {
  struct Write {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return fmt::format("{}", v); }
    std::string operator()(const std::string& v) const { return quoted(v); }
    std::string operator()(const Option::Table&) const { return "a table"; }
    std::string operator()(const Option::List& v) const {
      std::string out = "[";
      for (std::size_t i = 0; i < v.size(); ++i) {
        if (i > 0) out += ", ";
        if (out.size() > longest_shown) return out + "...]";
        out += to_text(v[i]);
      }
      return out + "]";
    }
  };
  return std::visit(Write{}, option.value);
}

void Problems::add(Place place, std::string text) {
  if (text.size() > longest_problem) text = text.substr(0, longest_problem) + " ...";
  // Once is enough: a missing folder is found by both splits of the data that lie in it. What is found twice is found
  // soon again, and a file with thousands of unknown keys is not compared with itself.
  constexpr std::size_t looked_at = 200;
  const std::size_t from = list_.size() > looked_at ? list_.size() - looked_at : 0;
  const bool known = std::ranges::any_of(std::span(list_).subspan(from), [&](const Problem& p) {
    return p.text == text && p.place.line == place.line && p.place.file == place.file;
  });
  if (!known) list_.push_back({std::move(place), std::move(text)});
}

std::string Problems::text(const std::string& file) const {
  std::vector<Problem> sorted = list_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.place.file, a.place.line) < std::tie(b.place.file, b.place.line);
  });
  const std::size_t left_out = sorted.size() > most_shown ? sorted.size() - most_shown : 0;
  sorted.resize(sorted.size() - left_out);
  std::string out;
  for (const Problem& problem : sorted) {
    const std::string& name = problem.place.file.empty() ? file : problem.place.file;
    if (!out.empty()) out += '\n';
    out += problem.place.line > 0 ? fmt::format("{}:{}: {}", name, problem.place.line, problem.text)
                                  : fmt::format("{}: {}", name, problem.text);
  }
  if (left_out > 0) out += fmt::format("\nand {} more problems", left_out);
  return out;
}

void Problems::throw_if_any(const std::string& file) const {
  if (!empty()) throw BadInput(text(file));
}

OptionReader::OptionReader(const Options& options, Problems& problems)
    : OptionReader(std::shared_ptr<const Options>(std::shared_ptr<const Options>(), &options), &problems) {}

OptionReader::OptionReader(std::shared_ptr<const Options> options, Problems* problems)
    : options_(std::move(options)), problems_(problems) {}

const Option* OptionReader::find(const std::string& key, std::optional<Option> fallback) {
  std::optional<Option>& known = asked_[key];
  if (fallback) known = std::move(fallback);
  const auto it = options_->items.find(key);
  return it == options_->items.end() ? nullptr : &it->second;
}

bool OptionReader::has(const std::string& key) const { return options_->items.contains(key); }

void OptionReader::ignore(const std::string& key) { find(key); }

std::string OptionReader::name(const std::string& key) const { return where().empty() ? key : where() + "." + key; }

Place OptionReader::place(const std::string& key) const {
  const auto it = options_->items.find(key);
  return it == options_->items.end() ? options_->place : it->second.place;
}

void OptionReader::problem(const std::string& key, std::string_view text) {
  problems_->add(place(key), fmt::format("{} {}", name(key), text));
}

void OptionReader::wrong(const std::string& key, const Option& found, const std::string& wanted) {
  problem(key, fmt::format("must be {}, is {}", wanted, to_text(found)));
}

std::int64_t OptionReader::integer(const std::string& key, std::int64_t fallback, std::int64_t least,
                                   std::int64_t most) {
  const Option* found = find(key, Option{fallback});
  if (!found) return fallback;
  const auto value = as_integer(*found);
  if (value && *value >= least && *value <= most) return *value;
  wrong(key, *found, whole_range(least, most));
  return fallback;
}

double OptionReader::number(const std::string& key, double fallback, double least, double most) {
  const Option* found = find(key, Option{fallback});
  if (!found) return fallback;
  const auto value = as_number(*found);
  if (value && *value >= least && *value <= most) return *value;
  wrong(key, *found, real_range(least, most));
  return fallback;
}

bool OptionReader::flag(const std::string& key, bool fallback) {
  const Option* found = find(key, Option{fallback});
  if (!found) return fallback;
  if (const bool* value = std::get_if<bool>(&found->value)) return *value;
  wrong(key, *found, "true or false");
  return fallback;
}

std::string OptionReader::text(const std::string& key, const std::string& fallback) {
  const Option* found = find(key, Option{fallback});
  if (!found) return fallback;
  if (const auto* value = std::get_if<std::string>(&found->value)) return *value;
  wrong(key, *found, "a text in quotes");
  return fallback;
}

std::string OptionReader::choice(const std::string& key, const std::string& fallback,
                                 const std::vector<std::string>& allowed) {
  const Option* found = find(key, Option{fallback});
  if (!found) return fallback;
  const auto* value = std::get_if<std::string>(&found->value);
  if (value && std::find(allowed.begin(), allowed.end(), *value) != allowed.end()) return *value;
  problem(key, fmt::format("must be one of {}, is {}{}", fmt::join(allowed, ", "), to_text(*found),
                           value ? did_you_mean(*value, allowed) : ""));
  return fallback;
}

namespace {

template <typename T>
Option list_from(const std::vector<T>& values) {
  Option::List list;
  for (const T& value : values) list.push_back({value});
  return {std::move(list)};
}

// Reads a list with `one`, which returns nothing for an element that does not fit.
template <typename T, typename One>
std::optional<std::vector<T>> list_of(const Option& option, One one) {
  std::vector<T> out;
  const auto take = [&](const Option& element) {
    const std::optional<T> value = one(element);
    if (value) out.push_back(*value);
    return value.has_value();
  };
  const auto* list = std::get_if<Option::List>(&option.value);
  const bool fits = list ? std::all_of(list->begin(), list->end(), take) : take(option);
  return fits ? std::optional(std::move(out)) : std::nullopt;
}

}  // namespace

std::vector<std::int64_t> OptionReader::integers(const std::string& key, const std::vector<std::int64_t>& fallback,
                                                 std::int64_t least, std::int64_t most) {
  const Option* found = find(key, list_from(fallback));
  if (!found) return fallback;
  const auto value = list_of<std::int64_t>(*found, [&](const Option& element) -> std::optional<std::int64_t> {
    const auto v = as_integer(element);
    return v && *v >= least && *v <= most ? v : std::nullopt;
  });
  if (value) return *value;
  wrong(key, *found, "a list, each " + whole_range(least, most));
  return fallback;
}

std::vector<double> OptionReader::numbers(const std::string& key, const std::vector<double>& fallback, double least,
                                          double most) {
  const Option* found = find(key, list_from(fallback));
  if (!found) return fallback;
  const auto value = list_of<double>(*found, [&](const Option& element) -> std::optional<double> {
    const auto v = as_number(element);
    return v && *v >= least && *v <= most ? v : std::nullopt;
  });
  if (value) return *value;
  wrong(key, *found, "a list, each " + real_range(least, most));
  return fallback;
}

std::vector<std::string> OptionReader::texts(const std::string& key, const std::vector<std::string>& fallback) {
  const Option* found = find(key, list_from(fallback));
  if (!found) return fallback;
  const auto value = list_of<std::string>(*found, [](const Option& element) -> std::optional<std::string> {
    const auto* v = std::get_if<std::string>(&element.value);
    return v ? std::optional(*v) : std::nullopt;
  });
  if (value) return *value;
  wrong(key, *found, "a list of texts in quotes");
  return fallback;
}

OptionReader OptionReader::table(const std::string& key) {
  const Option* found = find(key);
  if (found)
    if (const auto* table = std::get_if<Option::Table>(&found->value)) return {*table, problems_};
  if (found) wrong(key, *found, fmt::format("a table: write [{}] above its keys", name(key)));
  auto empty = std::make_shared<Options>();
  empty->where = name(key);
  empty->place = place(key);
  return {std::move(empty), problems_};
}

std::vector<OptionReader> OptionReader::tables(const std::string& key) {
  const Option* found = find(key);
  std::vector<OptionReader> out;
  if (!found) return out;
  const auto take = [&](const Option& element) {
    const auto* table = std::get_if<Option::Table>(&element.value);
    if (table) out.push_back({*table, problems_});
    return table != nullptr;
  };
  const auto* list = std::get_if<Option::List>(&found->value);
  if (!list || !std::all_of(list->begin(), list->end(), take))
    wrong(key, *found, fmt::format("a list of tables: write [[{}]] above each", name(key)));
  return out;
}

bool OptionReader::require(const std::string& key, std::string_view why) {
  if (find(key)) return true;
  problem(key, fmt::format("is missing: {}", why));
  return false;
}

void OptionReader::done() {
  std::vector<std::string> known;
  for (const auto& [key, fallback] : asked_) known.push_back(key);
  for (const auto& [key, option] : options_->items) {
    if (asked_.contains(key)) continue;
    std::string cure = did_you_mean(key, known);
    if (cure.empty())
      cure = known.empty() ? "; no key is expected here" : fmt::format("; known here: {}", fmt::join(known, ", "));
    problems_->add(option.place, fmt::format("unknown key {}{}", name(key), cure));
  }
}

}  // namespace echelon
