#include "cli/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "data/formats/npy.h"

namespace echelon::cli {

namespace {

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
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  count = std::min(count, order.size());
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count),
                            [&](std::size_t a, std::size_t b) {
                              return probabilities[a] != probabilities[b] ? probabilities[a] > probabilities[b] : a < b;
                            });
  order.resize(count);
  return order;
}

}  // namespace

double AnswerText::number(std::size_t i, std::span<const float> numbers) const {
  const auto value = static_cast<double>(numbers[i]);
  return meaning_.original ? meaning_.original(i, value) : value;
}

std::string AnswerText::header(std::uint64_t samples) const {
  if (format_ == AnswerFormat::npy) return data::npy_header("<f4", {samples, meaning_.names.size()});
  if (format_ != AnswerFormat::csv) return "";
  std::string out = "input";
  if (meaning_.classes) out += ",prediction,confidence";
  if (!meaning_.classes || all_classes())
    for (const std::string& name : meaning_.names) {
      out += ',';
      add_cell(out, meaning_.classes ? "p_" + name : name);
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
  if (!meaning_.classes) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      fmt::format_to(to, "{} {} {:.6g}", i ? "," : "", meaning_.names[i], number(i, numbers));
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
  if (meaning_.classes) {
    const auto best = static_cast<std::size_t>(std::ranges::max_element(numbers) - numbers.begin());
    out += ',';
    add_cell(out, meaning_.names[best]);
    fmt::format_to(to, ",{:.6g}", numbers[best]);
  }
  if (!meaning_.classes || all_classes())
    for (std::size_t i = 0; i < numbers.size(); ++i)
      meaning_.classes ? fmt::format_to(to, ",{:.6g}", numbers[i]) : fmt::format_to(to, ",{:.9g}", number(i, numbers));
  out += '\n';
}

void AnswerText::add_json(std::string& out, std::uint64_t sample, std::span<const float> numbers) const {
  nlohmann::ordered_json j{{"input", input_name_(sample)}};
  if (!meaning_.classes) {
    for (std::size_t i = 0; i < numbers.size(); ++i) j["prediction"][meaning_.names[i]] = number(i, numbers);
  } else {
    const auto best = ranked(numbers, static_cast<std::size_t>(meaning_.top));
    j["class"] = meaning_.names[best[0]], j["label"] = best[0], j["confidence"] = numbers[best[0]];
    for (std::size_t i = 1; i < best.size(); ++i)
      j["others"].push_back({{"class", meaning_.names[best[i]]}, {"confidence", numbers[best[i]]}});
    if (all_classes())
      for (std::size_t i = 0; i < numbers.size(); ++i) j["probabilities"][meaning_.names[i]] = numbers[i];
  }
  // Names come from files: whatever is no UTF-8 in them is replaced.
  out += j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  out += '\n';
}

void AnswerText::add_npy(std::string& out, std::span<const float> numbers) const {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto value = static_cast<float>(meaning_.classes ? numbers[i] : number(i, numbers));
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
