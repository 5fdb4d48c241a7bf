#include "foresight/outcomes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace echelon::foresight {

namespace {

constexpr std::size_t most_outcome_bytes = 16 << 10, most_outcomes = 2000;

struct NumberField {
  const char* name;
  double Outcome::*field;
};
constexpr NumberField number_fields[]{{"at", &Outcome::at},
                                      {"correction", &Outcome::correction},
                                      {"predicted", &Outcome::predicted},
                                      {"measured", &Outcome::measured},
                                      {"predicted_bytes", &Outcome::predicted_bytes},
                                      {"measured_bytes", &Outcome::measured_bytes},
                                      {"predicted_sent", &Outcome::predicted_sent},
                                      {"measured_sent", &Outcome::measured_sent},
                                      {"predicted_waits", &Outcome::predicted_waits},
                                      {"measured_waits", &Outcome::measured_waits},
                                      {"predicted_compute", &Outcome::predicted_compute},
                                      {"measured_compute", &Outcome::measured_compute},
                                      {"from_roofline", &Outcome::from_roofline}};
struct TextField {
  const char* name;
  std::string Outcome::*field;
};
constexpr TextField text_fields[]{
    {"run", &Outcome::run}, {"model", &Outcome::model}, {"plan", &Outcome::plan}, {"kind", &Outcome::kind}};

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

}  // namespace

std::string kind_of(const PlanSpec& plan, const Platform& platform) {
  std::string place = "in memory";
  if (platform.has_wires())
    place = fmt::format("over links of {:.3g} Mbit/s", 8e-6 * platform.bytes_per_second(0, platform.ranks() - 1));
  else if (!platform.shares_memory())
    place = "on a network";
  const char* how = !plan.splits_model() ? "whole"
                    : plan.pipeline > 1  ? "stages"
                    : plan.tensor > 1    ? "slices"
                    : plan.zero > 0      ? "shared state"
                                         : "recomputed";
  return fmt::format("{} {}{}", how, place, platform.turns() > 1 ? ", in turns" : "");
}

Json to_json(const Outcome& o) {
  Json json{{"workers", o.workers}, {"refitted", o.refitted ? 1 : 0}, {"why_off", o.why_off}};
  for (const TextField& f : text_fields) json[f.name] = o.*f.field;
  for (const NumberField& f : number_fields) json[f.name] = o.*f.field;
  return json;
}

Outcome parse_outcome(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, where, {.depth = 3, .values = 200});
  const auto get = [&](const char* key) -> const Json& {
    if (!json.is_object() || !json.contains(key)) bad_input("{}: '{}' is missing", where, key);
    return json.at(key);
  };
  Outcome o;
  const auto number = [&](const char* key) {
    const Json& value = get(key);
    const double n = value.is_number() ? value.get<double>() : -1;
    if (!std::isfinite(n) || n < 0 || n > 1e18) bad_input("{}: '{}' is no number from 0 on", where, key);
    return n;
  };
  o.workers = static_cast<int>(std::clamp(number("workers"), 1.0, 1e6));
  o.refitted = json.contains("refitted") && number("refitted") > 0;
  if (json.contains("why_off") && json.at("why_off").is_string()) o.why_off = json.at("why_off").get<std::string>();
  for (const NumberField& f : number_fields) o.*f.field = number(f.name);
  for (const TextField& f : text_fields) {
    const Json& value = get(f.name);
    if (!value.is_string() || value.get<std::string>().size() > 1000) bad_input("{}: '{}' is no text", where, f.name);
    o.*f.field = value.get<std::string>();
  }
  if (!(o.predicted > 0) || !(o.measured > 0)) bad_input("{}: times are more than 0", where);
  return o;
}

std::vector<Outcome> load_outcomes(Disk& disk, const std::string& folder) {
  std::vector<Outcome> all;
  const std::string place = folder + "/outcomes";
  if (folder.empty() || !disk.is_directory(place)) return all;
  std::vector<std::string> names = disk.list(place);
  if (names.size() > most_outcomes) names.erase(names.begin(), names.end() - most_outcomes);
  for (const std::string& name : names) try {
      if (name.ends_with(".json"))
        all.push_back(parse_outcome(read_text(disk, place + "/" + name, most_outcome_bytes), name));
    } catch (const Error&) {  // a damaged one grades nothing
    }
  std::ranges::stable_sort(all, {}, &Outcome::at);
  return all;
}

void save_outcome(Disk& disk, const std::string& folder, const Outcome& outcome, const std::string& name) {
  if (folder.empty()) return;
  disk.make_directories(folder + "/outcomes");
  write_file_atomically(disk, fmt::format("{}/outcomes/{}.json", folder, name), to_json(outcome).dump() + "\n");
}

namespace {

// measured / predicted of the last runs that `counts` is true of, as they would be without a correction.
std::vector<double> last_ratios(const std::vector<Outcome>& outcomes, const auto& counts) {
  constexpr std::size_t most = 9;
  std::vector<double> ratios;
  for (auto it = outcomes.rbegin(); it != outcomes.rend() && ratios.size() < most; ++it)
    if (it->correction > 0 && !it->refitted && counts(*it))
      ratios.push_back(it->measured / (it->predicted / it->correction));
  return ratios;
}

// Whether each of the runs is predicted better, in the mean, when the others correct it.
bool is_better_corrected(const std::vector<double>& ratios) {
  double with = 0, without = 0;
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    std::vector<double> others = ratios;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    with += std::abs(quantile(std::move(others), 0.5) / ratios[i] - 1);
    without += std::abs(1 / ratios[i] - 1);
  }
  return with < without;
}

}  // namespace

double correction_of(const std::vector<Outcome>& outcomes, const std::string& kind, const std::string& model) {
  constexpr std::size_t least = 3;
  std::vector<double> ratios =
      last_ratios(outcomes, [&](const Outcome& o) { return o.kind == kind && o.model == model; });
  if (ratios.size() < least) ratios = last_ratios(outcomes, [&](const Outcome& o) { return o.kind == kind; });
  if (ratios.size() < least || !is_better_corrected(ratios)) return 1;
  return std::clamp(quantile(std::move(ratios), 0.5), 0.25, 4.0);
}

void correct(Prediction& p, double factor) {
  p.correction *= factor;
  p.seconds *= factor, p.compute *= factor, p.exchange *= factor;
  for (RankPrediction& r : p.ranks) {
    r.compute *= factor, r.exchange *= factor;
    for (auto& [rank, seconds] : r.waits) seconds *= factor;
    for (auto& [what, seconds] : r.operations) seconds *= factor;
  }
  for (auto& [what, seconds] : p.parts) seconds *= factor;
  p.late.seconds *= factor, p.input *= factor;
}

Grade grade(const std::vector<Outcome>& outcomes) {
  Grade g{.runs = outcomes.size()};
  std::vector<double> errors;
  for (const Outcome& o : outcomes) {
    errors.push_back(std::abs(o.error()));
    if (o.predicted_bytes > 0 && o.measured_bytes > 0)
      g.memory = std::max(g.memory, std::abs(o.predicted_bytes / o.measured_bytes - 1));
  }
  g.median = quantile(errors, 0.5);
  g.ninetieth = quantile(std::move(errors), 0.9);
  return g;
}

}  // namespace echelon::foresight
