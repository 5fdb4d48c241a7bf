#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "recipe/toml.h"

namespace echelon {

std::string toml_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\u{:04X}", unsigned{byte});
    else
      out += c;
  }
  return out + '"';
}

namespace {

std::string key_text(const std::string& key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return bare ? key : toml_quoted(key);
}

// A number that is read back as a floating-point number with the same bits.
std::string real(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  std::string out = fmt::format("{}", v);
  return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
}

const Option::Table* as_table(const Option& option) { return std::get_if<Option::Table>(&option.value); }

// A list of tables only, which has its own way to be written.
const Option::List* as_tables(const Option& option) {
  const auto* list = std::get_if<Option::List>(&option.value);
  const bool all = list && !list->empty() && std::all_of(list->begin(), list->end(), as_table);
  return all ? list : nullptr;
}

// What decides about the meaning of the other keys comes first.
std::vector<const std::pair<const std::string, Option>*> in_order(const Options& options) {
  std::vector<const std::pair<const std::string, Option>*> items;
  for (const auto& item : options.items) items.push_back(&item);
  std::stable_partition(items.begin(), items.end(), [](const auto* item) {
    return item->first == "name" || item->first == "kind" || item->first == "type";
  });
  return items;
}

std::string inline_text(const Option& option) {
  struct Write {
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return real(v); }
    std::string operator()(const std::string& v) const { return toml_quoted(v); }
    std::string operator()(const Option::List& v) const {
      std::string out;
      for (const Option& element : v) out += (out.empty() ? "" : ", ") + inline_text(element);
      return "[" + out + "]";
    }
    std::string operator()(const Option::Table& v) const {
      std::string out;
      for (const auto* item : in_order(*v))
        out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", key_text(item->first), inline_text(item->second));
      return "{" + out + "}";
    }
  };
  return std::visit(Write{}, option.value);
}

void write_table(const Options& options, const std::string& path, std::string& out) {
  const auto items = in_order(options);
  for (const auto* item : items)
    if (!as_table(item->second) && !as_tables(item->second))
      out += fmt::format("{} = {}\n", key_text(item->first), inline_text(item->second));
  for (const auto* item : items) {
    const std::string name = (path.empty() ? "" : path + ".") + key_text(item->first);
    if (const auto* table = as_table(item->second)) {
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", name);
      write_table(**table, name, out);
    } else if (const auto* list = as_tables(item->second)) {
      for (const Option& element : *list) {
        out += fmt::format("{}[[{}]]\n", out.empty() ? "" : "\n", name);
        write_table(**as_table(element), name, out);
      }
    }
  }
}

}  // namespace

std::string toml_comment(std::string_view text) {
  std::string out = "# ";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7F ? ' ' : c;
  }
  return out + "\n";
}

std::string write_toml(const Options& options) {
  std::string out;
  write_table(options, "", out);
  return out;
}

}  // namespace echelon
