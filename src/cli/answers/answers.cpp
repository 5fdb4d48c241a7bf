#include "cli/answers/answers.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/formats/npy.h"

namespace echelon::cli {

namespace {

using Kind = AnswerMeaning::Kind;

// More likely than not, as the metrics of labels count them.
std::vector<std::size_t> labels_that_hold(std::span<const float> probabilities) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < probabilities.size(); ++i)
    if (probabilities[i] > 0.5f) all.push_back(i);
  return all;
}

// A cell of CSV (RFC 4180).
void add_cell(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) out.append(c == '"' ? 2 : 1, c);
  out += '"';
}

// The classes by falling probability; of equals the first.
std::vector<std::size_t> ranked(std::span<const float> probabilities, std::size_t count) {
  std::vector<std::size_t> best;
  best.reserve(std::min(count, probabilities.size()) + 1);
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    if (best.size() == count && !(probabilities[i] > probabilities[best.back()])) continue;
    const auto behind = std::ranges::upper_bound(best, probabilities[i], std::greater{},
                                                 [&](std::size_t b) { return probabilities[b]; });
    best.insert(behind, i);
    if (best.size() > count) best.pop_back();
  }
  return best;
}

// The shortest text that is this number again.
template <class Number>
void add_number(std::string& out, Number x) {
  std::array<char, 32> text;
  out.append(text.data(), fmt::format_to(text.data(), FMT_COMPILE("{}"), x));
}

// Names come from files: whatever is no UTF-8 in them is replaced.
void add_json_text(std::string& out, const std::string& text) {
  const auto plain = [](char c) { return c >= ' ' && c < 127 && c != '"' && c != '\\'; };
  if (std::ranges::all_of(text, plain))
    out += '"', out += text, out += '"';
  else
    out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <class Number>
void add_json_number(std::string& out, Number x) {
  if (std::isfinite(x))
    add_number(out, x);
  else
    out += "null";  // JSON has no other text for it
}

}  // namespace

AnswerText::AnswerText(AnswerFormat format, AnswerMeaning meaning, std::function<std::string(std::uint64_t)> input_name)
    : format_(format), meaning_(std::move(meaning)), input_name_(std::move(input_name)) {
  for (const std::string& name : meaning_.names) {
    add_json_text(json_names_.emplace_back(), name);
    json_keys_.push_back((json_keys_.empty() ? "" : ",") + json_names_.back() + ':');
  }
}

double AnswerText::number(std::size_t i, std::span<const float> numbers) const {
  const auto value = static_cast<double>(numbers[i]);
  return meaning_.original ? meaning_.original(i, value) : value;
}

std::string AnswerText::header(std::uint64_t samples) const {
  if (format_ == AnswerFormat::npy) return data::npy_header("<f4", {samples, meaning_.names.size()});
  if (format_ != AnswerFormat::csv) return "";
  std::string out = "input";
  if (!is(Kind::numbers)) out += ",prediction";
  if (is(Kind::classes)) out += ",confidence";
  if (is(Kind::numbers) || all_classes())
    for (const std::string& name : meaning_.names) {
      out += ',';
      add_cell(out, is(Kind::numbers) ? name : "p_" + name);
    }
  return out + "\n";
}

void AnswerText::add_row(std::string& out, std::uint64_t sample, std::span<const float> numbers) const {
  switch (format_) {
    case AnswerFormat::lines: return add_line(out, sample, numbers);
    case AnswerFormat::csv: return add_csv(out, sample, numbers);
    case AnswerFormat::jsonl: return add_json(out, sample, numbers);
    case AnswerFormat::npy: return add_npy(out, numbers);
  }
}

void AnswerText::add_line(std::string& out, std::uint64_t sample, std::span<const float> numbers) const {
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "{}:", input_name_(sample));
  if (is(Kind::numbers)) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      fmt::format_to(to, "{} {} {:.6g}", i ? "," : "", meaning_.names[i], number(i, numbers));
  } else if (is(Kind::labels)) {
    const std::size_t held = labels_that_hold(numbers).size();
    const auto order = ranked(numbers, held + static_cast<std::size_t>(meaning_.top));
    for (std::size_t i = 0; i < order.size(); ++i)
      fmt::format_to(to, "{} {} {:.1f} %",
                     i == held ? "   not"
                     : i       ? ","
                               : "",
                     meaning_.names[order[i]], 100 * numbers[order[i]]);
  } else {
    const auto best = ranked(numbers, static_cast<std::size_t>(meaning_.top));
    fmt::format_to(to, " {} ({:.1f} %)", meaning_.names[best[0]], 100 * numbers[best[0]]);
    for (std::size_t i = 1; i < best.size(); ++i)
      fmt::format_to(to, "{} {} {:.1f} %", i == 1 ? "   else" : ",", meaning_.names[best[i]], 100 * numbers[best[i]]);
  }
  out += '\n';
}

void AnswerText::add_csv(std::string& out, std::uint64_t sample, std::span<const float> numbers) const {
  const auto to = std::back_inserter(out);
  add_cell(out, input_name_(sample));
  if (is(Kind::classes)) {
    const auto best = static_cast<std::size_t>(std::ranges::max_element(numbers) - numbers.begin());
    out += ',';
    add_cell(out, meaning_.names[best]);
    out += ',';
    add_number(out, numbers[best]);
  } else if (is(Kind::labels)) {
    std::string all;
    for (const std::size_t i : labels_that_hold(numbers)) all += (all.empty() ? "" : ";") + meaning_.names[i];
    out += ',';
    add_cell(out, all);
  }
  if (is(Kind::numbers))
    for (std::size_t i = 0; i < numbers.size(); ++i) fmt::format_to(to, ",{:.9g}", number(i, numbers));
  else if (all_classes())
    for (const float p : numbers) out += ',', add_number(out, p);
  out += '\n';
}

// The numbers by name: a JSON object.
void AnswerText::add_json_numbers(std::string& out, const char* key, std::span<const float> numbers) const {
  out += ",\"";
  out += key;
  out += "\":{";
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    out += json_keys_[i];
    if (is(Kind::numbers))
      add_json_number(out, number(i, numbers));
    else
      add_json_number(out, numbers[i]);
  }
  out += '}';
}

void AnswerText::add_json(std::string& out, std::uint64_t sample, std::span<const float> numbers) const {
  out += "{\"input\":";
  add_json_text(out, input_name_(sample));
  if (is(Kind::numbers)) {
    add_json_numbers(out, "prediction", numbers);
  } else if (is(Kind::labels)) {
    out += ",\"labels\":[";
    for (const char* between = ""; const std::size_t i : labels_that_hold(numbers))
      out += between + json_names_[i], between = ",";
    out += ']';
  } else {
    const auto best = ranked(numbers, static_cast<std::size_t>(meaning_.top));
    out += ",\"class\":";
    out += json_names_[best[0]];
    out += ",\"label\":";
    add_number(out, best[0]);
    out += ",\"confidence\":";
    add_json_number(out, numbers[best[0]]);
    if (best.size() > 1) out += ",\"others\":[";
    for (std::size_t i = 1; i < best.size(); ++i) {
      out += i > 1 ? ",{\"class\":" : "{\"class\":";
      out += json_names_[best[i]];
      out += ",\"confidence\":";
      add_json_number(out, numbers[best[i]]);
      out += '}';
    }
    if (best.size() > 1) out += ']';
  }
  if (!is(Kind::numbers) && all_classes()) add_json_numbers(out, "probabilities", numbers);
  out += "}\n";
}

void AnswerText::add_npy(std::string& out, std::span<const float> numbers) const {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto value = static_cast<float>(number(i, numbers));
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
}

AnswerFormat answer_format_named(const std::string& name) {
  if (name == "csv") return AnswerFormat::csv;
  if (name == "jsonl") return AnswerFormat::jsonl;
  if (name == "npy") return AnswerFormat::npy;
  bad_input("answers are written as csv, jsonl or npy, not as '{}'", name);
}

AnswerFormat answer_format_of(const std::string& file) {
  const std::size_t dot = file.find_last_of("./");
  if (dot == std::string::npos || file[dot] == '/')
    bad_input("{}: the end of the name says what is written: .csv, .jsonl or .npy (or say --format)", file);
  const std::string end = file.substr(dot + 1);
  if (end != "csv" && end != "jsonl" && end != "npy")
    bad_input("{}: answers are written as .csv, .jsonl or .npy (or say --format)", file);
  return answer_format_named(end);
}

}  // namespace echelon::cli
