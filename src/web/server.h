#pragma once
// The page over HTTP (cpp-httplib): who may ask is decided by web/guard.h, what is answered by web/board_api.h and
// web/board_actions.h; here are only sockets, limits and the stream of changes (/api/events, server-sent events).
//
// Limits (world/http/requests.h): heads 16 KiB, bodies 64 KiB, 5 s to send a request, 512 connections without one, 24
// requests at work, 8 of them streams. With a certificate it speaks TLS.

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "web/board_api.h"
#include "web/guard.h"

namespace echelon::web {

struct ServerSettings {
  std::string host = "127.0.0.1";
  int port = 6006;  // 0: any that is free
  std::string certificate, key;
  std::string token;  // for whatever changes something
};

class BoardServer {
 public:
  // Listens from now on. BadInput if the port is taken, or if other machines could reach it without a certificate.
  BoardServer(BoardApi& api, const ServerSettings& settings);
  ~BoardServer();

  int port() const { return port_; }
  std::string address() const;  // "http://127.0.0.1:6006/"
  // Answers until `stop` is true.
  void run(const std::atomic<bool>& stop);

 private:
  struct Http;
  void route();
  BoardApi& api_;
  GuardSettings guard_;
  std::string host_;
  int port_ = 0;
  std::atomic<int> streams_ = 0;
  std::atomic<bool> ending_ = false;
  std::unique_ptr<Http> http_;
};

}  // namespace echelon::web
