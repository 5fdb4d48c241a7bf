#include "world/transport/tcp/wire.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/error.h"

namespace echelon::tcp {

namespace {

void set_options(int socket) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  // Where it is known: BBR, the default of some machines, paces; on fast links that was measured to cost a third.
  ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
  // The kernel enlarges the receive buffer by itself, up to more than what we could ask for; a send buffer that holds a
  // few pieces keeps the line busy while we compute checksums.
  const int send_bytes = 2 << 20;
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof send_bytes);
}

Flow flow_of(ssize_t result, Flow wants) {
  if (result > 0) return Flow::done;
  if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return wants;
  return Flow::closed;
}

}  // namespace

Wire::Wire(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {
  socket_.native_non_blocking(true);
  set_options(socket_.native_handle());
}

Flow Wire::handshake() { return socket_.is_open() ? tls_->handshake() : Flow::closed; }

Flow Wire::read(std::span<const iovec> pieces, std::size_t& bytes) {
  bytes = 0;
  if (!socket_.is_open()) return Flow::closed;
  if (tls_) {
    for (const iovec& piece : pieces) {
      std::size_t n = 0;
      const Flow flow = tls_->read({static_cast<std::byte*>(piece.iov_base), piece.iov_len}, n);
      bytes += n;
      if (flow != Flow::done) return bytes > 0 ? Flow::done : flow;
      if (n < piece.iov_len) break;
    }
    return Flow::done;
  }
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  ssize_t n;
  do n = ::recvmsg(socket_.native_handle(), &message, 0);
  while (n < 0 && errno == EINTR);
  if (n > 0) bytes = static_cast<std::size_t>(n);
  return flow_of(n, Flow::wants_input);
}

Flow Wire::write(std::span<const iovec> pieces, std::size_t& bytes) {
  bytes = 0;
  if (!socket_.is_open()) return Flow::closed;
  if (tls_) {
    for (const iovec& piece : pieces) {
      std::size_t n = 0;
      const Flow flow = tls_->write({static_cast<const std::byte*>(piece.iov_base), piece.iov_len}, n);
      bytes += n;
      if (flow != Flow::done) return bytes > 0 ? Flow::done : flow;
      if (n < piece.iov_len) break;
    }
    return Flow::done;
  }
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  ssize_t n;
  do n = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  if (n > 0) bytes = static_cast<std::size_t>(n);
  return flow_of(n, Flow::wants_output);
}

Flow Wire::flush() {
  if (!socket_.is_open()) return Flow::closed;
  return tls_ ? tls_->flush() : Flow::done;
}

asio::awaitable<void> Wire::wait_for(Flow flow) {
  using Socket = asio::ip::tcp::socket;
  if (flow == Flow::closed) fail("the other side hung up");
  co_await socket_.async_wait(flow == Flow::wants_input ? Socket::wait_read : Socket::wait_write, asio::use_awaitable);
}

asio::awaitable<void> Wire::read_all(std::span<std::byte> into) {
  while (!into.empty()) {
    std::size_t n = 0;
    const iovec piece = {into.data(), into.size()};
    const Flow flow = read({&piece, 1}, n);
    into = into.subspan(n);
    if (flow != Flow::done) co_await wait_for(flow);
  }
}

asio::awaitable<void> Wire::write_all(std::span<const std::byte> from) {
  while (!from.empty()) {
    std::size_t n = 0;
    const iovec piece = {const_cast<std::byte*>(from.data()), from.size()};
    const Flow flow = write({&piece, 1}, n);
    from = from.subspan(n);
    if (flow != Flow::done) co_await wait_for(flow);
  }
  for (Flow flow = flush(); flow != Flow::done; flow = flush()) co_await wait_for(flow);
}

}  // namespace echelon::tcp
