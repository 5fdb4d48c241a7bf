// What can be asked with GET: health, metadata, metrics.
#include <algorithm>
#include <map>
#include <regex>

#include "serve/protocol.h"
#include "serve/server.h"

namespace echelon::serve {
namespace {

std::string metrics_text(const std::vector<ServedModel>& models) {
  std::string text;
  const auto family = [&](const char* name, const char* kind, const char* help, auto&& value) {
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, kind);
    for (const ServedModel& m : models)
      text += fmt::format("{}{{model=\"{}\",version=\"{}\"}} {}\n", name, m.name, m.version, value(*m.batcher));
  };
  family("echelon_requests_total", "counter", "Requests taken into the queue.",
         [](const Batcher& b) { return b.accepted(); });
  family("echelon_samples_total", "counter", "Samples answered.", [](const Batcher& b) { return b.samples(); });
  family("echelon_batches_total", "counter", "Batches run.", [](const Batcher& b) { return b.batches(); });
  family("echelon_refused_total", "counter", "Requests refused because too much was waiting.",
         [](const Batcher& b) { return b.refused(); });
  family("echelon_waiting", "gauge", "Samples that wait.", [](const Batcher& b) { return b.waiting(); });
  text += "# HELP echelon_request_seconds From a request's arrival to its answer.\n";
  text += "# TYPE echelon_request_seconds summary\n";
  for (const ServedModel& m : models) {
    const std::string labels = fmt::format("model=\"{}\",version=\"{}\"", m.name, m.version);
    const Latency& l = m.batcher->latency();
    for (const double share : {0.5, 0.9, 0.99, 0.999})
      text += fmt::format("echelon_request_seconds{{{},quantile=\"{}\"}} {:.9g}\n", labels, share, l.percentile(share));
    text += fmt::format("echelon_request_seconds_sum{{{0}}} {1:.9g}\nechelon_request_seconds_count{{{0}}} {2}\n",
                        labels, l.sum(), l.count());
  }
  return text;
}

Page model_page(const std::string& rest, const std::vector<ServedModel>& models, bool ready) {
  const std::regex pattern("([^/]+)(/versions/([^/]+))?(/ready)?");
  std::smatch m;
  if (!std::regex_match(rest, m, pattern)) return {};
  const ServedModel* model = find_model(models, m[1], m[3]);
  if (!model) return {.status = 404, .body = error_text(fmt::format("there is no model '{}'", rest))};
  if (m[4].matched) return {.status = ready ? 200 : 503, .body = "{}"};
  std::vector<std::string> versions;
  for (const ServedModel& one : models)
    if (one.name == model->name) versions.push_back(one.version);
  return {.status = 200, .body = metadata(model->name, versions, model->batcher->inputs(), model->batcher->outputs())};
}

}  // namespace

const ServedModel* find_model(const std::vector<ServedModel>& models, const std::string& name,
                              const std::string& version) {
  const ServedModel* found = nullptr;
  for (const ServedModel& m : models) {
    if (m.name != name || (!version.empty() && m.version != version)) continue;
    if (!found || std::stoll(m.version) > std::stoll(found->version)) found = &m;
  }
  return found;
}

Page get_page(const std::string& path, const std::vector<ServedModel>& models, bool ready) {
  if (path == "/v2/health/live") return {.status = 200, .body = "{\"live\":true}"};
  if (path == "/v2/health/ready")
    return {.status = ready ? 200 : 503, .body = ready ? "{\"ready\":true}" : "{\"ready\":false}"};
  if (path == "/v2" || path == "/v2/")
    return {.status = 200,
            .body = "{\"name\":\"echelon\",\"version\":\"0.1.0\",\"extensions\":[\"binary_tensor_data\"]}"};
  if (path == "/metrics") return {.status = 200, .type = "text/plain; version=0.0.4", .body = metrics_text(models)};
  const std::string prefix = "/v2/models/";
  if (path.starts_with(prefix)) return model_page(path.substr(prefix.size()), models, ready);
  return {};
}

}  // namespace echelon::serve
