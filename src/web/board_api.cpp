#include "web/board_api.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "registry/archive.h"
#include "track/checkpoint.h"
#include "web/downsample.h"
#include "web/prometheus.h"
#include "world/os/folder_disk.h"

namespace echelon::web {

namespace {

constexpr double between_refreshes = 0.5;
constexpr std::size_t most_runs_of_a_request = 100, most_messages_of_an_answer = 4000;
constexpr std::uint64_t longest_log = 64u << 10, longest_text = 4u << 20;

class NotFound : public BadInput {
  using BadInput::BadInput;
};

std::string end_of_file(Disk& disk, const std::string& path, std::uint64_t most) {
  if (!disk.exists(path)) return "";
  const auto file = disk.open(path);
  const std::uint64_t size = file->size(), from = size > most ? size - most : 0;
  std::string text(size - from, '\0');
  text.resize(file->read_at(from, std::as_writable_bytes(std::span(text))));
  if (from > 0) text.erase(0, text.find('\n') + 1);
  return text;
}

Json json_file(Disk& disk, const std::string& path) try {
  if (!disk.exists(path)) return nullptr;
  return parse_json(read_text(disk, path, longest_text), path);
} catch (const Error&) {
  return nullptr;
}

// One JSON value a line; lines that are none are left out.
Json json_lines(Disk& disk, const std::string& path) {
  Json all = Json::array();
  std::string text = end_of_file(disk, path, longest_text);
  for (std::size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) try {
      all.push_back(parse_json(std::string_view(text).substr(0, end), path));
    } catch (const BadInput&) {
    }
  return all;
}

std::vector<std::string> runs_of(const Query& query) {
  std::vector<std::string> runs = query.texts("run");
  if (runs.empty()) bad_input("no run is named");
  if (runs.size() > most_runs_of_a_request) bad_input("at most {} runs at a time", most_runs_of_a_request);
  return runs;
}

}  // namespace

BoardApi::BoardApi(std::string root, Clock& clock, BoardHooks hooks)
    : root_(std::move(root)),
      clock_(clock),
      hooks_(std::move(hooks)),
      disk_(make_real_disk()),
      inside_(make_folder_disk(root_)),
      registry_(root_),
      series_(*inside_),
      traces_(*inside_) {}

void BoardApi::refresh() {
  if (clock_.seconds() - refreshed_ < between_refreshes) return;
  refresh_index(*disk_, root_, registry_, hooks_.read);
  refreshed_ = clock_.seconds();
}

RunFolder BoardApi::folder_of(const std::string& name) {
  try {
    registry_.get(name);  // names that the registry has were made by us: they cannot lead out of the root
  } catch (const BadInput& problem) {
    throw NotFound(problem.what());
  }
  return {root_ + "/" + name};
}

Reply BoardApi::get(const std::string& path, const Query& query) {
  Reply reply;
  mutex_.take([&] {
    try {
      reply = answer(path, query);
    } catch (const NotFound& problem) {
      reply = error_reply(404, problem.what());
    } catch (const BadInput& problem) {
      reply = error_reply(400, problem.what());
    } catch (const std::exception& problem) {
      reply = error_reply(500, problem.what());
    }
  });
  return reply;
}

Reply BoardApi::answer(const std::string& path, const Query& query) {
  refresh();
  if (path == "/api/runs") return json_reply(runs(query));
  if (path == "/api/run") return json_reply(run(query));
  if (path == "/api/metrics") return json_reply(metrics_of(query));
  if (path == "/api/curves") return json_reply(curves(query));
  if (path == "/api/reach") return json_reply(reach(query));
  if (path == "/api/trace") return json_reply(trace(query));
  if (path == "/api/trace/messages")
    return json_reply(trace_messages(traces_.trace(folder_of(query.text("run")).trace()), query.number("from", 0),
                                     most_messages_of_an_answer));
  if (path == "/api/trace/totals") return json_reply(trace_totals(traces_.trace(folder_of(query.text("run")).trace())));
  if (path == "/api/graph") return json_reply(hooks_.graph(folder_of(query.text("run"))));
  if (path == "/api/system") return json_reply(hooks_.system(folder_of(query.text("run"))));
  if (path == "/api/pictures")
    return {200, "image/png", read_text(*inside_, folder_of(query.text("run")).pictures(), longest_text)};
  if (path == "/metrics")
    return {200, "text/plain; version=0.0.4; charset=utf-8", prometheus_text(registry_, series_, root_)};
  return error_reply(404, "there is nothing here");
}

Json BoardApi::runs(const Query& query) {
  Json all = Json::array();
  for (const RunRecord& record : registry_.find(query.text("q"))) all.push_back(to_json(record));
  return {{"runs", all}, {"keys", registry_.keys()}, {"root", root_}};
}

Json BoardApi::run(const Query& query) {
  const RunFolder folder = folder_of(query.text("name"));
  Json json = to_json(registry_.get(query.text("name")));
  json["recipe"] = read_text(*inside_, folder.recipe(), longest_text);
  json["summary"] = json_file(*inside_, folder.summary());
  json["evaluation"] = json_file(*inside_, folder.evaluation());
  json["histograms"] = json_lines(*inside_, folder.histograms());
  json["journal"] = json_lines(*inside_, folder.journal());
  json["texts"] = json_lines(*inside_, folder.texts());
  json["has_pictures"] = inside_->exists(folder.pictures());
  json["cluster"] = json_file(*inside_, folder.cluster());
  json["log"] =
      end_of_file(*inside_, folder.log(static_cast<int>(std::clamp(query.number("rank", 0), 0.0, 1e6))), longest_log);
  json["has_trace"] = inside_->exists(folder.trace());
  json["archived"] = archived_steps(*inside_, folder);
  return json;
}

Json BoardApi::metrics_of(const Query& query) {
  std::map<std::string, int> names;
  for (const std::string& name : runs_of(query))
    for (const auto& [metric, values] : series_.columns(folder_of(name)).values) ++names[metric];
  Json all = Json::array();
  for (const auto& [metric, count] : names) all.push_back(metric);
  return all;
}

Json BoardApi::curves(const Query& query) {
  const std::string metric = query.text("metric", "train_loss"), x_name = query.text("x", "step");
  const double from = query.number("from", -1e300), to = query.number("to", 1e300);
  const auto most = static_cast<std::size_t>(std::clamp(query.number("points", 800), 4.0, 100'000.0));
  Json all = Json::array();
  for (const std::string& name : runs_of(query)) {
    const Columns& columns = series_.columns(folder_of(name));
    std::vector<double> x = columns.column(x_name), y = columns.column(metric);
    if (x_name == "time" && !x.empty())
      for (const double start = x.front(); double& t : x) t -= start;
    const Curve curve = x.size() == y.size() ? downsample(x, y, from, to, most) : Curve{};
    all.push_back({{"run", name}, {"x", curve.x}, {"y", curve.y}, {"points", curve.points}});
  }
  return {{"metric", metric}, {"x", x_name}, {"curves", all}};
}

Json BoardApi::reach(const Query& query) {
  const std::string metric = query.text("metric", "test_accuracy");
  const double target = query.number("target", 0.9);
  const bool lower = metric.ends_with("loss") || query.text("lower") == "1";
  Json all = Json::array();
  for (const std::string& name : runs_of(query)) {
    const Columns& columns = series_.columns(folder_of(name));
    const std::vector<double> y = columns.column(metric);
    Json found{{"run", name}, {"reached", false}};
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (!(lower ? y[i] <= target : y[i] >= target)) continue;
      found["reached"] = true;
      for (const char* cost : {"step", "seconds", "samples", "bytes"}) {
        const std::vector<double> column = columns.column(cost);
        if (i < column.size() && std::isfinite(column[i])) found[cost] = column[i];
      }
      break;
    }
    all.push_back(found);
  }
  return {{"metric", metric}, {"target", target}, {"lower", lower}, {"runs", all}};
}

Json BoardApi::trace(const Query& query) {
  const ReadTrace& trace = traces_.trace(folder_of(query.text("run")).trace());
  const double from = query.number("from", 0), to = query.number("to", trace.end);
  if (!(to > from)) bad_input("the trace is asked for from {} to {}", from, to);
  return trace_window(trace, from, to, static_cast<int>(std::clamp(query.number("dots", 1000), 10.0, 4000.0)));
}

Json BoardApi::changes(std::map<std::string, std::string>& seen) {
  Json changed = Json::array();
  mutex_.take([&] {
    try {
      refresh();
      const auto now = registry_.stamps();
      for (const auto& [name, stamp] : now)
        if (const auto it = seen.find(name); it == seen.end() || it->second != stamp) changed.push_back(name);
      for (const auto& [name, stamp] : seen)
        if (!now.contains(name)) changed.push_back(name);
      seen = now;
    } catch (const Error&) {  // the next look may succeed
    }
  });
  return {{"runs", changed}};
}

void BoardApi::with_registry(const std::function<void(Registry&, Disk&, const std::string& root)>& f) {
  mutex_.take([&] {
    refresh();  // a run may be asked for something before anybody has looked at the table
    f(registry_, *inside_, root_);
  });
}

}  // namespace echelon::web
