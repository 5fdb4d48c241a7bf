#include "track/control.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "track/append_log.h"

namespace echelon {

namespace {
constexpr std::array<std::string_view, 7> control_actions{"pause", "resume", "checkpoint", "stop",
                                                          "rate",  "resize", "switch"};
constexpr double largest_rate_factor = 1000;
constexpr std::uint64_t longest_request = 4096;
}  // namespace

void check_control(const ControlRequest& request) {
  if (std::ranges::find(control_actions, request.action) == control_actions.end())
    bad_input("'{}' is nothing that a run can be asked: pause, resume, checkpoint, stop, rate, resize, switch",
              request.action);
  if (request.action == "resize" &&
      !(request.value >= 1 && request.value <= most_workers_asked && request.value == std::floor(request.value)))
    bad_input("a run has 1 to {} workers, not {}", most_workers_asked, request.value);
  const int parts = !request.system.empty() + !request.codec.empty() + !request.plan.empty() + !request.servers.empty();
  if (request.action == "switch" && parts != 1)
    bad_input("switch wants one of the four: --system NAME, --codec NAME, --plan PLAN or --servers N");
  const std::string& servers = request.servers;
  const bool number = servers.size() <= 4 && servers.find_first_not_of("0123456789") == std::string::npos;
  if (!servers.empty() && servers != "all" && servers != "quickest" && !(number && servers[0] != '0'))
    bad_input("servers are a number, all, or quickest (of those that were tried before), not '{}'", servers);
  if (request.action == "rate" && !(request.value > 0 && request.value <= largest_rate_factor))
    bad_input("the rate is multiplied by more than 0 and at most {}, not by {}", largest_rate_factor, request.value);
}

Json to_json(const ControlRequest& request) {
  Json json{{"action", request.action}, {"value", request.value}};
  if (!request.system.empty()) json["system"] = request.system;
  if (!request.codec.empty()) json["codec"] = request.codec;
  if (!request.plan.empty()) json["plan"] = request.plan;
  if (!request.servers.empty()) json["servers"] = request.servers;
  return json;
}

std::string in_words(const ControlRequest& request) {
  if (!request.plan.empty()) return "plan " + request.plan;
  if (!request.servers.empty()) return "servers " + request.servers;
  return request.system.empty() ? "codec " + request.codec : "system " + request.system;
}

ControlRequest parse_control(std::string_view text) {
  try {
    const Json json = parse_json(text, "control.json", {.depth = 2, .values = 32});
    ControlRequest request{.action = json.at("action").get<std::string>(),
                           .value = json.value("value", 1.0),
                           .system = json.value("system", ""),
                           .codec = json.value("codec", ""),
                           .plan = json.value("plan", ""),
                           .servers = json.value("servers", "")};
    check_control(request);
    return request;
  } catch (const Json::exception& problem) {
    bad_input("control.json: is no request ({})", problem.what());
  }
}

void send_control(Disk& disk, const RunFolder& folder, const ControlRequest& request) {
  check_control(request);
  if (disk.exists(folder.control()))
    bad_input("the run has not taken the last request yet; it does so between two steps. Try again in a moment");
  write_file_atomically(disk, folder.control(), to_json(request).dump());
}

ControlReader::ControlReader(Disk& disk, Clock& clock, RunFolder folder)
    : disk_(disk), clock_(clock), folder_(std::move(folder)) {
  take();
}

bool ControlReader::waiting() {
  const double now = clock_.seconds();
  if (there_ || now - looked_ < between_looks) return there_;
  looked_ = now;
  try {
    there_ = disk_.exists(folder_.control());
  } catch (const Error&) {  // a disk that fails is no reason to stop
  }
  return there_;
}

std::optional<ControlRequest> ControlReader::take() {
  there_ = false;
  try {
    if (!disk_.exists(folder_.control())) return std::nullopt;
    std::optional<ControlRequest> request;
    try {
      request = parse_control(read_text(disk_, folder_.control(), longest_request));
    } catch (const BadInput&) {  // no request, and so nothing that another one has to wait for
    }
    disk_.remove_all(folder_.control());
    return request;
  } catch (const Error&) {
  }
  return std::nullopt;
}

void ControlReader::journal(std::int64_t step, const ControlRequest& request) { journal(step, to_json(request)); }

void ControlReader::journal(std::int64_t step, Json change) {
  change["time"] = clock_.unix_seconds();
  change["step"] = step;
  try {
    AppendLog(disk_, folder_.journal()).append(change.dump() + "\n");
  } catch (const Error&) {
  }
}

}  // namespace echelon
