#pragma once
// One accepted connection, plain or with TLS. The socket does not block; waiting is done by whoever has the connection,
// one thread at a time. Closed by the destructor.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

typedef struct ssl_ctx_st SSL_CTX;  // NOLINT: OpenSSL's own
typedef struct ssl_st SSL;          // NOLINT

namespace echelon::http {

// A certificate and its key, from PEM files. BadInput if they are none.
class ServerCertificate {
 public:
  ServerCertificate(const std::string& certificate, const std::string& key);
  ~ServerCertificate();
  ServerCertificate(const ServerCertificate&) = delete;
  SSL_CTX* context() const { return context_; }

 private:
  SSL_CTX* context_;
};

class Connection {
 public:
  // Takes the socket over. `certificate`: null for plain bytes; otherwise it must outlive the connection.
  Connection(int socket, const ServerCertificate* certificate);
  ~Connection();
  Connection(const Connection&) = delete;

  int socket() const { return socket_; }

  enum class Read { bytes, nothing_yet, ended };
  // Appends what has arrived to `text`, which grows to `most` bytes at most. Does not wait.
  Read read(std::string& text, std::size_t most);
  // What poll() should wait for before `read` can go on (TLS may have to write first).
  short awaited() const { return awaited_; }

  // Bytes written without waiting; 0: none now; -1: the connection is broken.
  std::ptrdiff_t write_some(std::string_view bytes);
  // Writes all. False if it is broken, or if `time_left` seconds, which become fewer, were spent waiting for the
  // client.
  bool write(std::string_view bytes, double& time_left);
  // Waits until something can be written: false if the client has gone or no time is left.
  bool wait_writable(double& time_left);
  bool wait_readable(double seconds);
  void shut_down_writing();

 private:
  int socket_;
  SSL* ssl_ = nullptr;
  short awaited_;
};

}  // namespace echelon::http
