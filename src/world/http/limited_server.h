#pragma once
// cpp-httplib's server on the limits of world/http/requests.h: the library accepts connections, reads one request from
// memory and routes it; who may hold what for how long is decided there. Only included where the library is.

#include <httplib.h>

#include <algorithm>
#include <memory>

#include "world/http/requests.h"

namespace echelon::http {

class LimitedServer final : public httplib::Server {
 public:
  // `certificate`: null for plain HTTP.
  LimitedServer(const Limits& limits, std::unique_ptr<ServerCertificate> certificate)
      : answer_seconds_(limits.answer_seconds),
        requests_(limits, std::move(certificate),
                  [this](Connection& connection, std::string_view request) { return answer(connection, request); }) {
    new_task_queue = [this] { return new AtOnce(requests_); };
    set_payload_max_length(limits.request.body_bytes);
    set_keep_alive_timeout(static_cast<time_t>(limits.head_seconds));  // what clients are told
    // The library's own choice, SO_REUSEPORT, would let another program listen on the same port and take some requests.
    set_socket_options([](auto socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
  }
  ~LimitedServer() override { requests_.stop(); }

  // Listens from now on, at `port` or, if that is 0, at any that is free. The port; -1 if that is not possible.
  int bind(const std::string& host, int port) {
    if (port == 0)
      port = bind_to_any_port(host);
    else if (!bind_to_port(host, port))
      port = -1;
    // The library lets five connections wait to be accepted: a sixth client would be made to try again after a second.
    if (port >= 0) ::listen(svr_sock_, 1024);
    return port;
  }

 private:
  // The library hands each connection to its queue: nothing is done with it there but taking it over.
  class AtOnce final : public httplib::TaskQueue {
   public:
    explicit AtOnce(Requests& requests) : requests_(requests) {}
    void enqueue(std::function<void()> job) override { job(); }
    void shutdown() override { requests_.stop(); }

   private:
    Requests& requests_;
  };

  class RequestStream final : public httplib::Stream {
   public:
    RequestStream(Connection& connection, std::string_view request, double time_left)
        : connection_(connection), rest_(request), time_left_(time_left) {}
    bool is_readable() const override { return !rest_.empty(); }
    bool is_writable() const override { return connection_.wait_writable(time_left_); }
    ssize_t read(char* into, size_t size) override {
      const std::size_t count = std::min(size, rest_.size());
      std::copy_n(rest_.begin(), count, into);
      rest_.remove_prefix(count);
      return static_cast<ssize_t>(count);
    }
    ssize_t write(const char* bytes, size_t size) override {
      return connection_.write({bytes, size}, time_left_) ? static_cast<ssize_t>(size) : -1;
    }
    void get_remote_ip_and_port(std::string&, int&) const override {}  // nobody asks
    void get_local_ip_and_port(std::string&, int&) const override {}
    socket_t socket() const override { return connection_.socket(); }

   private:
    Connection& connection_;
    std::string_view rest_;
    mutable double time_left_;
  };

  bool process_and_close_socket(socket_t socket) override {
    requests_.take(socket);
    return true;
  }

  bool answer(Connection& connection, std::string_view request) {
    RequestStream stream(connection, request, answer_seconds_);
    bool closed = false;
    return process_request(stream, false, closed, nullptr) && !closed;
  }

  const double answer_seconds_;
  Requests requests_;
};

}  // namespace echelon::http
