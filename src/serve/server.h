#pragma once
// The HTTP server of `echelon serve`: the Open Inference Protocol v2 (serve/protocol.h) over cpp-httplib, and /metrics
// as Prometheus reads it. Several models, each in one or more versions; a request that names no version gets the
// newest.
//
// Limits (world/http/requests.h): heads 16 KiB, bodies `body_bytes` (refused before they are read), `connections`
// requests at work at once, 512 connections without one. A full queue, and more requests than are answered in time
// (serve/admission.h), are answered with 429, a server that goes down with 503.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "serve/batcher.h"

namespace echelon::serve {

struct ServedModel {
  std::string name, version;  // versions are numbers
  Batcher* batcher = nullptr;
};

struct ServerSettings {
  std::string host = "127.0.0.1";
  int port = 8000;    // 0: any that is free
  std::string token;  // every request needs it if it is not empty
  std::size_t body_bytes = 16 << 20;
  int connections = 128;
  std::int64_t batch = 32;
  double most_seconds = 0.05;  // that requests may take before more are refused (serve/admission.h)
};

// What a GET of `path` is answered, without sockets; an empty body: there is no such page.
struct Page {
  int status = 404;
  std::string type = "application/json", body;
};
Page get_page(const std::string& path, const std::vector<ServedModel>& models, bool ready);

class Server {
 public:
  // Listens from now on. BadInput if the port is taken, or if other machines can reach it and there is no token. The
  // batchers must outlive the server.
  Server(std::vector<ServedModel> models, const ServerSettings& settings);
  ~Server();
  int port() const { return port_; }
  // Answers until `stop` is true; then refuses what is new, lets the batchers finish what they have, and returns.
  void run(const std::atomic<bool>& stop);

 private:
  struct Http;
  std::vector<ServedModel> models_;
  ServerSettings settings_;
  std::atomic<bool> ready_{true};
  int port_ = 0;
  std::unique_ptr<Http> http_;
};

// The model of a path such as "digits" or "digits/versions/2"; null if there is none.
const ServedModel* find_model(const std::vector<ServedModel>& models, const std::string& name,
                              const std::string& version);

}  // namespace echelon::serve
