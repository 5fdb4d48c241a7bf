#include "web/prometheus.h"

#include <cmath>

#include "base/error.h"

namespace echelon::web {

std::string prometheus_name(const std::string& metric) {
  std::string name = "echelon_";
  for (const char c : metric) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += fine ? c : '_';
  }
  return name;
}

std::string prometheus_label(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n')
      text += "\\n";
    else
      text += c;
  }
  return text;
}

namespace {

std::string number_text(double value) {
  return std::isnan(value) ? "NaN" : std::isinf(value) ? (value > 0 ? "+Inf" : "-Inf") : fmt::format("{}", value);
}

std::string text_of(const RunRecord& record, const char* key) {
  const auto it = record.values.find(key);
  const auto* text = it == record.values.end() ? nullptr : std::get_if<std::string>(&it->second);
  return text ? *text : "";
}

}  // namespace

std::string prometheus_text(Registry& registry, SeriesStore& series, const std::string& root) {
  std::map<std::string, int> states;
  std::map<std::string, std::string> samples;  // of each metric, one line a run
  for (const RunRecord& record : registry.find("")) {
    const std::string state = text_of(record, "state");
    ++states[state];
    if (state != "running") continue;
    const Columns& columns = series.columns({root + "/" + record.name});
    const std::string labels = fmt::format("{{run=\"{}\",model=\"{}\"}}", prometheus_label(record.name),
                                           prometheus_label(text_of(record, "model")));
    const auto add = [&](const std::string& metric, double value) {
      samples[prometheus_name(metric)] += fmt::format("{}{} {}\n", prometheus_name(metric), labels, number_text(value));
    };
    if (columns.step.empty()) continue;
    add("step", columns.step.back());
    add("epoch", columns.epoch.back());
    for (const auto& [metric, values] : columns.values)
      for (auto it = values.rbegin(); it != values.rend(); ++it)
        if (!std::isnan(*it)) {
          add(metric, *it);
          break;
        }
  }
  std::string text = "# HELP echelon_runs Runs in the folder, by state.\n# TYPE echelon_runs gauge\n";
  for (const auto& [state, count] : states)
    text += fmt::format("echelon_runs{{state=\"{}\"}} {}\n", prometheus_label(state), count);
  for (const auto& [name, lines] : samples)
    text += fmt::format("# HELP {0} The newest value of live runs.\n# TYPE {0} gauge\n{1}", name, lines);
  return text;
}

}  // namespace echelon::web
