#include "cli/training/experiment_flags.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/listed.h"
#include "base/text.h"

namespace echelon::cli {

namespace {

std::optional<double> read_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

using Unit = std::pair<std::string_view, double>;

// As units are compared: without blanks, in small letters.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c != ' ') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// A positive number with one of the units, in the smallest of them.
template <std::size_t n>
std::optional<double> read_quantity(std::string_view text, const std::array<Unit, n>& units) {
  for (const auto& [name, size] : units)
    if (text.ends_with(name))
      if (const auto value = read_number(text.substr(0, text.size() - name.size()));
          value && *value > 0 && std::isfinite(*value * size))
        return *value * size;
  return std::nullopt;
}

}  // namespace

LinkLimit read_link(const std::string& given) {
  static constexpr std::array<Unit, 6> rates{
      {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"kbit/s", 1e3}, {"mbit/s", 1e6}, {"gbit/s", 1e9}}};
  static constexpr std::array<Unit, 3> times{{{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};  // "s" last: the others end so
  // Nobody knows whether a b is bits or bytes: 100mb is refused, and so is 100MB/s.
  static constexpr std::array<Unit, 9> unclear{
      {{"kb", 1}, {"mb", 1}, {"gb", 1}, {"kb/s", 1}, {"mb/s", 1}, {"gb/s", 1}, {"kbps", 1}, {"mbps", 1}, {"gbps", 1}}};
  const std::string text = plain(given);
  const auto parts = split(text, ',');
  const auto rate = read_quantity(parts[0], rates);
  const auto latency = parts.size() == 2 ? read_quantity(parts[1], times) : 0;
  if (!rate || *rate < 1 || !latency || parts.size() > 2)  // a bit takes at most a second
    bad_input(
        "--link is the speed of every worker's link and, if it matters, its latency: 100mbit, 2.5gbit or 100mbit,1ms "
        "(kbit, mbit, gbit; us, ms, s), not '{}'{}",
        given, read_quantity(parts[0], unclear) ? "; its b could be bits or bytes: 12.5 MB/s are 100mbit" : "");
  return {.bytes_per_second = *rate / 8, .latency = *latency};
}

Straggler read_straggler(const std::string& text) {
  const auto complain = [&](const std::string& why) {
    bad_input(
        "--straggler {}: {}; write rank=2,factor=4 (that worker computes four times as long), or "
        "rank=any,factor=4,chance=0.1 (in one step of ten, a worker drawn from the seed)",
        text, why);
  };
  std::optional<int> rank;
  std::optional<double> factor, chance;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    const std::string_view said = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    const auto value = said == "any" && key == "rank" ? -1 : read_number(said);
    if (key != "rank" && key != "factor" && key != "chance") complain(fmt::format("there is no '{}'", key));
    if (key == "rank" ? rank.has_value() : key == "factor" ? factor.has_value() : chance.has_value())
      complain(fmt::format("{} is said twice", key));
    if (key == "rank") {
      if (said != "any" && (!value || *value < 0 || *value > 1e6 || *value != std::floor(*value)))
        complain(fmt::format("the rank is a whole number or any, not '{}'", said));
      rank = static_cast<int>(*value);
    } else if (key == "factor") {
      if (!value || *value < 1 || *value > 1e6)
        complain(fmt::format("the factor is a number from 1 to 1e6, not '{}'", said));
      factor = value;
    } else {
      if (!value || *value <= 0 || *value > 1)
        complain(fmt::format("the chance is above 0 and at most 1, not '{}'", said));
      chance = value;
    }
  }
  if (!rank || !factor) complain(fmt::format("the {} is missing", rank ? "factor" : "rank"));
  return {.rank = *rank, .factor = *factor, .chance = chance.value_or(1)};
}

Byzantine read_byzantine(const std::string& text) {
  const auto parts = split(text, ':');
  std::vector<std::string> names;
  for (const LieRow& row : lies()) names.emplace_back(row.name);
  const auto complain = [&](const std::string& why) {
    bad_input(
        "--byzantine {}: {}; write 2:sign_flip (the last two workers send the opposite of their gradients), or "
        "2:sign_flip:4 (four times as large). There are {}",
        text, why, listed(names));
  };
  if (parts.size() < 2 || parts.size() > 3) complain("it is how many workers lie, a colon, and how");
  const auto count = read_number(parts[0]);
  if (!count || *count < 1 || *count > 1e6 || *count != std::floor(*count))
    complain(fmt::format("how many workers lie is a whole number from 1, not '{}'", parts[0]));
  const auto row = std::ranges::find(lies(), parts[1], [](const LieRow& r) { return std::string_view(r.name); });
  if (row == lies().end())
    complain(fmt::format("no worker lies by '{}'{}", parts[1], did_you_mean(std::string(parts[1]), names)));
  const auto strength = parts.size() == 3 ? read_number(parts[2]) : row->strength;
  if (!strength || *strength <= 0 || *strength > 1e9)
    complain(fmt::format("the strength is a number above 0, at most 1e9, not '{}'", parts[2]));
  if (parts.size() == 3 && row->lie == Lie::label_flip) complain("labels are flipped or not, without a strength");
  return {.count = static_cast<int>(*count), .lie = row->lie, .strength = *strength};
}

BitFlip read_flip(const std::string& text) {
  const auto complain = [&](const std::string& why) {
    bad_input("--flip-bit {}: {}; write rank=1,step=20 or rank=1,step=20,of=gradient", text, why);
  };
  BitFlip flip{.rank = -1, .step = -1};
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    const std::string_view said = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    const auto value = read_number(said);
    const bool whole = value && *value >= 0 && *value <= 1e6 && *value == std::floor(*value);
    if (key == "of" && (said == "weights" || said == "gradient" || said == "nan"))
      flip.of = said == "weights" ? BitFlip::weights : said == "nan" ? BitFlip::nan : BitFlip::gradient;
    else if (key == "rank" && whole)
      flip.rank = static_cast<int>(*value);
    else if (key == "step" && whole && *value > 0)
      flip.step = static_cast<std::int64_t>(*value);
    else
      complain(fmt::format("'{}' is not understood", part));
  }
  if (flip.rank < 0 || flip.step < 0) complain(fmt::format("the {} is missing", flip.rank < 0 ? "rank" : "step"));
  return flip;
}

}  // namespace echelon::cli
