#include "web/server.h"

#include "base/access.h"
#include "base/error.h"
#include "web/board_actions.h"
#include "web/page.h"
#include "world/http/limited_server.h"
#include "world/os/tasks.h"

namespace echelon::web {

namespace {

constexpr int requests_at_work = 24, most_streams = 8;
constexpr double between_looks_for_changes = 1;

Query query_of(const httplib::Request& request) { return {{request.params.begin(), request.params.end()}}; }

// As a provider of so many bytes, which the library does not compress: its choice (brotli at its slowest) would take
// longer than the way through this machine's memory.
void send_bytes(std::string_view bytes, const std::shared_ptr<const std::string>& owner, const std::string& type,
                httplib::Response& response) {
  response.set_content_provider(bytes.size(), type,
                                [bytes, owner](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
                                  return sink.write(bytes.data() + offset, length);
                                });
}

void send_reply(Reply reply, httplib::Response& response) {
  response.status = reply.status;
  const auto body = std::make_shared<const std::string>(std::move(reply.body));
  if (body->empty())
    response.set_content("", reply.type);
  else
    send_bytes(*body, body, reply.type, response);
}

std::string bracketed(const std::string& host) {
  return host.find(':') != std::string::npos && !host.starts_with('[') ? "[" + host + "]" : host;
}

}  // namespace

struct BoardServer::Http {
  http::LimitedServer server;
};

BoardServer::BoardServer(BoardApi& api, const ServerSettings& settings) : api_(api), host_(settings.host) {
  const bool tls = !settings.certificate.empty();
  if (!is_loopback(settings.host) && !tls)
    bad_input(
        "--host {}: other machines could reach the page there, so it needs --certificate and --key (TLS), and "
        "--token-file. Without them: leave it on this machine, and open it from another one through ssh -L "
        "{}:localhost:{}",
        settings.host, settings.port, settings.port);
  http::Limits limits;
  limits.request.body_bytes = longest_action;
  limits.workers = requests_at_work;
  http_.reset(new Http{
      {limits, tls ? std::make_unique<http::ServerCertificate>(settings.certificate, settings.key) : nullptr}});
  port_ = http_->server.bind(settings.host, settings.port);
  if (port_ < 0)
    bad_input("port {} of {} is taken, or the address is none of this machine; choose another with --port (0: any)",
              settings.port, settings.host);
  guard_ = {.hosts = {},
            .scheme = tls ? "https" : "http",
            .token = settings.token,
            .token_for_reading = !is_loopback(settings.host)};
  for (const std::string& name :
       {settings.host, std::string("localhost"), std::string("127.0.0.1"), std::string("::1")})
    guard_.hosts.push_back(fmt::format("{}:{}", bracketed(name), port_));
  route();
}

BoardServer::~BoardServer() = default;

std::string BoardServer::address() const { return fmt::format("{}://{}:{}/", guard_.scheme, bracketed(host_), port_); }

void BoardServer::route() {
  httplib::Server& server = http_->server;
  httplib::Headers headers;
  for (const auto& [name, value] : safe_headers()) headers.emplace(name, value);
  server.set_default_headers(headers);
  server.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    const RequestHead head{.method = request.method,
                           .path = request.path,
                           .host = request.get_header_value("Host"),
                           .origin = request.get_header_value("Origin"),
                           .authorization = request.get_header_value("Authorization"),
                           .content_type = request.get_header_value("Content-Type")};
    int status = 200;
    const std::string refused = refuse(guard_, head, status);
    if (refused.empty()) return httplib::Server::HandlerResponse::Unhandled;
    send_reply(error_reply(status, refused), response);
    return httplib::Server::HandlerResponse::Handled;
  });
  server.set_exception_handler([](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
    send_reply(error_reply(500, "the request could not be answered"), response);
  });
  server.Get("/api/events", [this](const httplib::Request&, httplib::Response& response) {
    if (++streams_ > most_streams) {
      --streams_;
      send_reply(error_reply(503, "too many pages are open"), response);
      return;
    }
    auto seen = std::make_shared<std::map<std::string, std::string>>();
    api_.changes(*seen);
    response.set_chunked_content_provider(
        "text/event-stream",
        [this, seen](std::size_t, httplib::DataSink& sink) {
          const Json changes = api_.changes(*seen);
          const std::string event = changes["runs"].empty() ? ": nothing new\n\n" : "data: " + changes.dump() + "\n\n";
          if (ending_ || !sink.write(event.data(), event.size())) return false;
          sleep_really(between_looks_for_changes);
          return !ending_;
        },
        [this](bool) { --streams_; });
  });
  const auto ask = [this](const httplib::Request& request, httplib::Response& response) {
    if (const PageFile* file = page_file(request.path)) {
      send_bytes(file->bytes, nullptr, std::string(file->type), response);
      return;
    }
    send_reply(api_.get(request.path, query_of(request)), response);
  };
  server.Get(".*", ask);
  server.Post(".*", [this](const httplib::Request& request, httplib::Response& response) {
    send_reply(act(api_, request.path, request.body), response);
  });
}

void BoardServer::run(const std::atomic<bool>& stop) {
  httplib::Server& server = http_->server;
  const auto watch = spawn_thread("board", [&] {
    while (!stop && !ending_) sleep_really(0.1);
    ending_ = true;
    server.stop();
  });
  server.listen_after_bind();
  ending_ = true;
  watch->join();
}

}  // namespace echelon::web
