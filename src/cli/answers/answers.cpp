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

constexpr std::size_t most_written = 100;  // classes; more would make rows that nobody reads

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

void add_json_number(std::string& out, double x) {
  if (std::isfinite(x))
    add_number(out, x);
  else
    out += "null";  // JSON has no other text for it
}

// The probabilities of a row as text, each made once however often it is written.
class ProbabilityTexts {
 public:
  ProbabilityTexts(std::span<const float> all, bool json) : all_(all), json_(json), kept_(all.size() <= most_written) {
    if (!kept_) return;
    char* end = text_.data();
    for (std::size_t i = 0; i < all.size(); ++i) {
      begins_[i] = static_cast<std::uint16_t>(end - text_.data());
      end = write(end, all[i]);
    }
    begins_[all.size()] = static_cast<std::uint16_t>(end - text_.data());
  }
  void add(std::string& out, std::size_t i) const {
    std::array<char, longest> one;
    if (kept_)
      out.append(text_.data() + begins_[i], text_.data() + begins_[i + 1]);
    else
      out.append(one.data(), write(one.data(), all_[i]));
  }

 private:
  static constexpr std::size_t longest = 16;  // -1.17549435e-38

  char* write(char* to, float x) const {
    if (json_ && !std::isfinite(x)) return std::ranges::copy(std::string_view("null"), to).out;
    return fmt::format_to(to, FMT_COMPILE("{}"), x);
  }

  std::span<const float> all_;
  bool json_, kept_;
  std::array<char, most_written * longest> text_;
  std::array<std::uint16_t, most_written + 1> begins_;
};

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

bool AnswerText::all_classes() const { return meaning_.names.size() <= most_written; }

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
    if (held == 0) out += " no label";
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
  add_cell(out, input_name_(sample));
  if (is(Kind::numbers)) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      fmt::format_to(std::back_inserter(out), ",{:.9g}", number(i, numbers));
    out += '\n';
    return;
  }
  const ProbabilityTexts texts(numbers, false);
  if (is(Kind::classes)) {
    const auto best = static_cast<std::size_t>(std::ranges::max_element(numbers) - numbers.begin());
    out += ',';
    add_cell(out, meaning_.names[best]);
    out += ',';
    texts.add(out, best);
  } else {
    std::string all;
    for (const std::size_t i : labels_that_hold(numbers)) all += (all.empty() ? "" : ";") + meaning_.names[i];
    out += ',';
    add_cell(out, all);
  }
  if (all_classes())
    for (std::size_t i = 0; i < numbers.size(); ++i) out += ',', texts.add(out, i);
  out += '\n';
}

void AnswerText::add_json(std::string& out, std::uint64_t sample, std::span<const float> numbers) const {
  out += "{\"input\":";
  add_json_text(out, input_name_(sample));
  if (is(Kind::numbers)) {
    out += ",\"prediction\":{";
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      out += json_keys_[i];
      add_json_number(out, number(i, numbers));
    }
    out += "}}\n";
    return;
  }
  const ProbabilityTexts texts(numbers, true);
  if (is(Kind::labels)) {
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
    texts.add(out, best[0]);
    if (best.size() > 1) out += ",\"others\":[";
    for (std::size_t i = 1; i < best.size(); ++i) {
      out += i > 1 ? ",{\"class\":" : "{\"class\":";
      out += json_names_[best[i]];
      out += ",\"confidence\":";
      texts.add(out, best[i]);
      out += '}';
    }
    if (best.size() > 1) out += ']';
  }
  if (all_classes()) {
    out += ",\"probabilities\":{";
    for (std::size_t i = 0; i < numbers.size(); ++i) out += json_keys_[i], texts.add(out, i);
    out += '}';
  }
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
