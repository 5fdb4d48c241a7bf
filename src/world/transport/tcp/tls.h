#pragma once
// TLS 1.3 without a certificate authority. Each process makes a self-signed certificate, which proves nothing; the
// handshake (world/transport/tcp/handshake.h) proves who the peer is and is bound to the TLS connection.
//
// A Tls may be used by several threads; a TlsSession by one at a time. Throws Failure with OpenSSL's text.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "world/transport/tcp/secret.h"

struct ssl_st;
struct ssl_ctx_st;

namespace echelon::tcp {

class TlsSession;

class Tls {
 public:
  Tls();  // makes key and certificate: about a millisecond
  ~Tls();
  std::unique_ptr<TlsSession> accept(int socket) const;
  std::unique_ptr<TlsSession> connect(int socket) const;

 private:
  ssl_ctx_st* context_;
};

enum class Flow { done, wants_input, wants_output, closed };

// One connection over a non-blocking socket, which it does not own. Nothing here blocks. What is written is encrypted
// into a buffer at once and sent by `flush`: many records in one system call.
class TlsSession {
 public:
  TlsSession(ssl_st* ssl, int socket);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;

  Flow handshake();
  Bytes32 channel_binding() const;  // after the handshake: the same on both ends and only there

  // At least one byte (done), or why not.
  Flow read(std::span<std::byte> into, std::size_t& bytes);
  Flow write(std::span<const std::byte> from, std::size_t& bytes);
  Flow flush();  // done: everything has left

 private:
  friend struct SessionBio;
  Flow fill();

  ssl_st* ssl_;
  int socket_;
  std::vector<std::byte> in_, out_;
  std::size_t in_at_ = 0, in_end_ = 0, out_at_ = 0, out_end_ = 0;
  bool closed_ = false;
};

}  // namespace echelon::tcp
