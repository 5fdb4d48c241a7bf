#pragma once
// A connected socket, plain or with TLS, that never blocks: each call moves what can be moved now. To wait, use Asio on
// `socket()`. Another thread may close the socket meanwhile; from then on every call returns Flow::closed and touches
// nothing, for the number of its descriptor may belong to another connection. For one thread at a time.

#include <sys/uio.h>

#include <memory>
#include <span>
#include <string>

#include "world/transport/tcp/asio.h"
#include "world/transport/tcp/tls.h"

namespace echelon::tcp {

class Wire {
 public:
  explicit Wire(asio::ip::tcp::socket socket);  // makes it non-blocking, without Nagle's delay
  Wire(Wire&&) = default;

  asio::ip::tcp::socket& socket() { return socket_; }
  void use_tls(std::unique_ptr<TlsSession> session) { tls_ = std::move(session); }
  TlsSession* tls() { return tls_.get(); }
  Flow handshake();  // of TLS

  // At least one byte into the pieces, in order (done), or why not.
  Flow read(std::span<const iovec> pieces, std::size_t& bytes);
  Flow write(std::span<const iovec> pieces, std::size_t& bytes);
  Flow flush();  // done: nothing is buffered here

  // Before there are frames: moves all of it, or throws Failure ("the other side hung up").
  asio::awaitable<void> wait_for(Flow flow);
  asio::awaitable<void> read_all(std::span<std::byte> into);
  asio::awaitable<void> write_all(std::span<const std::byte> from);

 private:
  asio::ip::tcp::socket socket_;
  std::unique_ptr<TlsSession> tls_;
};

}  // namespace echelon::tcp
