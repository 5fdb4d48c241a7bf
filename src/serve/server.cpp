#include "serve/server.h"

#include "base/access.h"
#include "base/error.h"
#include "serve/admission.h"
#include "serve/protocol.h"
#include "world/http/limited_server.h"
#include "world/os/tasks.h"
#include "world/os/wake_up.h"

namespace echelon::serve {

struct Server::Http {
  http::LimitedServer server;
  Admission admission;
};

namespace {

void answer_error(httplib::Response& response, int status, const std::string& what) {
  response.status = status;
  response.set_content(error_text(what), "application/json");
}

std::optional<std::size_t> json_bytes_of(const httplib::Request& request) {
  if (!request.has_header("Inference-Header-Content-Length")) return {};
  const std::string text = request.get_header_value("Inference-Header-Content-Length");
  if (text.empty() || text.size() > 12 || text.find_first_not_of("0123456789") != std::string::npos)
    bad_input("Inference-Header-Content-Length is '{}', which is no number of bytes", text);
  return static_cast<std::size_t>(std::stoull(text));
}

void infer(const ServedModel& model, const ServerSettings& settings, const httplib::Request& request,
           const std::string& body, httplib::Response& response) {
  try {
    InferRequest asked =
        read_infer(body, json_bytes_of(request), model.batcher->inputs(), model.batcher->outputs(), settings.batch);
    const std::vector<Rows> answers = model.batcher->infer(std::move(asked.rows), asked.samples);
    InferAnswer answer = write_answer(model.name, model.version, asked, model.batcher->outputs(), answers);
    if (answer.json_bytes) response.set_header("Inference-Header-Content-Length", std::to_string(*answer.json_bytes));
    response.set_content(std::move(answer.body), answer.json_bytes ? "application/octet-stream" : "application/json");
  } catch (const BadInput& problem) {
    answer_error(response, 400, problem.what());
  } catch (const Busy& problem) {
    response.set_header("Retry-After", "1");
    answer_error(response, 429, problem.what());
  } catch (const std::exception& problem) {
    answer_error(response, 500, problem.what());
  }
}

}  // namespace

Server::Server(std::vector<ServedModel> models, const ServerSettings& settings)
    : models_(std::move(models)), settings_(settings) {
  if (!is_loopback(settings_.host) && settings_.token.empty())
    bad_input(
        "--host {}: other machines could ask, and there is no token: name a file that holds one with --token-file",
        settings_.host);
  http::Limits limits;
  limits.request.body_bytes = settings_.body_bytes;
  limits.workers = settings_.connections;
  http_.reset(new Http{{limits, nullptr}, {settings_.most_seconds, settings_.batch}});
  httplib::Server& http = http_->server;
  http.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    using Handled = httplib::Server::HandlerResponse;
    if (!settings_.token.empty() &&
        !same_secret(request.get_header_value("Authorization"), "Bearer " + settings_.token)) {
      answer_error(response, 401, "the token is missing or wrong (Authorization: Bearer TOKEN)");
      return Handled::Handled;
    }
    if (!ready_ && request.method == "POST") {
      answer_error(response, 503, "the server is going down");
      return Handled::Handled;
    }
    return Handled::Unhandled;
  });
  // The body is read here, and not by the library, which takes what `curl -d` sends for a form of at most 8 KiB.
  http.Post(R"(/v2/models/([^/]+)(?:/versions/([^/]+))?/infer)",
            [this](const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& reader) {
              std::string body;
              const bool whole = reader([&](const char* piece, std::size_t size) {
                if (size > settings_.body_bytes - body.size()) return false;
                body.append(piece, size);
                return true;
              });
              const ServedModel* model = find_model(models_, request.matches[1], request.matches[2]);
              if (!whole)
                return answer_error(response, 413, fmt::format("a request has at most {} bytes", settings_.body_bytes));
              if (!model)
                return answer_error(response, 404, fmt::format("there is no model '{}'", request.matches[1].str()));
              if (!http_->admission.enter(monotonic_seconds())) {
                model->batcher->count_refusal();
                response.set_header("Retry-After", "1");
                return answer_error(response, 429, "more requests are at work than can be answered in time");
              }
              infer(*model, settings_, request, body, response);
              http_->admission.leave(monotonic_seconds());
            });
  http.Get(".*", [this](const httplib::Request& request, httplib::Response& response) {
    const Page page = get_page(request.path, models_, ready_);
    if (page.body.empty()) return answer_error(response, 404, "there is no such page");
    response.status = page.status;
    response.set_content(page.body, page.type.c_str());
  });
  port_ = http_->server.bind(settings_.host, settings_.port);
  if (port_ < 0) bad_input("cannot listen on {}:{}: name another --port", settings_.host, settings_.port);
}

Server::~Server() = default;

void Server::run(const std::atomic<bool>& stop) {
  const auto watcher = spawn_thread("serve-stop", [&] {
    while (!stop) sleep_really(0.05);
    ready_ = false;
    for (const ServedModel& m : models_) m.batcher->drain();
    http_->server.stop();
  });
  http_->server.listen_after_bind();
  watcher->join();
}

}  // namespace echelon::serve
