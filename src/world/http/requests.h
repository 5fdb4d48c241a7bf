#pragma once
// Whole requests from many connections. A connection has no thread before its request is there as a whole: slow, silent
// and broken clients cost one descriptor and a bounded buffer each, and never keep an honest one waiting. If there are
// too many, or if they hold too many bytes, those that have waited longest for nothing are closed.
//
// SIGPIPE does not arise. Thread-safe.

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "world/http/connection.h"
#include "world/http/request_size.h"
#include "world/world.h"

namespace echelon::http {

struct Limits {
  RequestLimits request;
  int workers = 24;               // requests that are answered at once
  std::size_t waiting = 512;      // connections without a whole request
  std::size_t ready = 256;        // whole requests that wait for a worker; more are answered with 503
  double head_seconds = 5;        // for the head of a request, and between two requests
  double least_rate = 128 << 10;  // bytes a second of a body
  double answer_seconds = 10;     // that one answer may wait for its client to read
};

class Requests {
 public:
  // Called on a worker's thread with the bytes of one request. Returns whether the connection is kept.
  using Answer = std::function<bool(Connection& connection, std::string_view request)>;

  // `certificate`: null for plain HTTP.
  Requests(const Limits& limits, std::unique_ptr<ServerCertificate> certificate, Answer answer);
  ~Requests();
  Requests(const Requests&) = delete;

  void take(int socket);  // an accepted connection
  // Closes what waits, lets the workers answer what is ready, and ends them. May be called again.
  void stop();

 private:
  struct Client {
    std::unique_ptr<Connection> connection;
    std::string text;      // bytes of this request, and of later ones
    std::size_t size = 0;  // of this request, once that is known
    double deadline = 0;
    bool told_to_continue = false;
    bool refused = false;  // it has its answer; what it still sends is thrown away
    std::size_t thrown_away = 0;
  };
  enum class State { waits, ready, over };

  void gather();
  bool hand_over(Client& client);
  void work();
  State look_at(Client& client);
  State drain(Client& client) const;
  State refuse(Client& client, int status, const char* why);
  void begin_request(Client& client, double now) const;
  void admit(Client&& client);
  void make_room();
  void wake();

  const Limits limits_;
  const std::size_t most_bytes_;  // in the buffers of all that wait, and as much again in whole requests
  const std::unique_ptr<ServerCertificate> certificate_;
  const Answer answer_;
  const int wake_;  // an eventfd

  std::list<Client> waiting_;  // only of the gathering task; the longest-waiting first

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<Client> arrived_;  // for the gathering task
  std::deque<Client> ready_;
  std::size_t held_bytes_ = 0;  // of requests that are ready or being answered
  bool ending_ = false, gathered_ = false;

  std::unique_ptr<Task> gatherer_;
  std::vector<std::unique_ptr<Task>> workers_;
};

}  // namespace echelon::http
