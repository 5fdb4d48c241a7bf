#include "cli/runs/run_html.h"

#include <algorithm>

#include "base/error.h"
#include "track/curve.h"

namespace echelon::cli {

namespace {

constexpr const char* html_style =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 "
    "1rem;color:#1c2128;background:#fff}"
    "table{border-collapse:collapse;font-size:.92rem}td,th{padding:.2rem .6rem;border-bottom:1px solid "
    "#dfe2e7;text-align:left}"
    "td.n{text-align:right}pre{background:#f6f7f9;padding:.8rem;overflow:auto;border-radius:8px}svg{max-width:100%;"
    "height:auto}"
    "h2{font-size:1.05rem;margin-top:2rem}"
    "@media(prefers-color-scheme:dark){body{color:#e6e9ee;background:#14171c}td,th{border-color:#303741}pre{background:"
    "#1c2027}}";

std::string curves_html(const std::vector<MetricPoint>& points, const std::string& title,
                        const std::vector<std::string>& metrics, bool log) {
  std::vector<Series> all;
  for (const std::string& metric : metrics)
    if (Series s = series_of(points, metric); !s.x.empty())
      all.push_back(metric.starts_with("train") ? smoothed(s, 8) : std::move(s));
  if (all.empty()) return "";
  std::string svg = plot_svg(all, {.title = title, .x_label = "step", .y_label = "", .log_y = log});
  return svg.substr(svg.find("<svg"));
}

// The metrics without the part that each was measured on, the loss and the accuracy first.
std::vector<std::string> measured_in(const std::vector<MetricPoint>& points) {
  std::vector<std::string> found{"loss", "accuracy"};
  for (const MetricPoint& point : points)
    for (const auto& [name, value] : point.values)
      for (const std::string_view part : {"train_", "val_", "test_"})
        if (name.starts_with(part))
          if (const std::string metric = name.substr(part.size()); std::ranges::find(found, metric) == found.end())
            found.push_back(metric);
  return found;
}

std::string confusion_html(const Json& evaluation) {
  std::string html = "<h2>Confusion matrix</h2><table><tr><th>is \\ said</th>";
  for (const Json& name : evaluation.at("classes")) html += "<th>" + html_escaped(name.get<std::string>()) + "</th>";
  html += "</tr>";
  for (std::size_t i = 0; i < evaluation.at("confusion").size(); ++i) {
    html += "<tr><th>" + html_escaped(evaluation["classes"].at(i).get<std::string>()) + "</th>";
    for (const Json& n : evaluation["confusion"][i])
      html += fmt::format("<td class=\"n\">{}</td>", n.get<std::int64_t>());
    html += "</tr>";
  }
  return html + "</table>";
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += c;
  }
  return out;
}

std::string run_html(Disk& disk, const RunFacts& facts) {
  const RunFolder& folder = facts.info.folder;
  const std::string name = html_escaped(facts.info.name);
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src "
      "'none'; style-src 'unsafe-inline'\"><title>{0}</title><style>{1}</style></head>\n<body><h1>{0}</h1>\n<table>",
      name, html_style);
  const auto row = [&](std::string_view key, const std::string& value) {
    html += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", html_escaped(key), html_escaped(value));
  };
  row("model", facts.model);
  row("started (UTC)", started_text(facts));
  row("state", facts.state);
  row("best", best_text(facts));
  if (facts.info.summary.is_object())
    for (const auto& [key, value] : facts.info.summary.items()) {
      if (value.is_number() && key != "best")
        row(key, fmt::format("{:.6g}", value.get<double>()));
      else if (value.is_string() && key != "run_dir")
        row(key, value.get<std::string>());
    }
  html += "</table>\n<h2>Curves</h2>\n";
  const std::vector<MetricPoint> points = read_metrics(disk, folder.metrics()).points;
  for (const std::string& metric : measured_in(points))
    html += curves_html(points, metric, {"train_" + metric, "val_" + metric, "test_" + metric}, metric == "loss");
  try {
    if (disk.exists(folder.evaluation()))
      html += confusion_html(parse_json(read_text(disk, folder.evaluation()), folder.evaluation()));
  } catch (const Json::exception&) {
  } catch (const BadInput&) {
  }
  return html + "<h2>Recipe</h2>\n<pre>" + html_escaped(read_text(disk, folder.recipe())) + "</pre>\n</body></html>\n";
}

}  // namespace echelon::cli
