#include "world/http/connection.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "base/error.h"
#include "world/os/wake_up.h"

namespace echelon::http {

namespace {

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int milliseconds(double seconds) { return static_cast<int>(std::ceil(std::max(0.0, seconds) * 1e3)); }

}  // namespace

ServerCertificate::ServerCertificate(const std::string& certificate, const std::string& key)
    : context_(SSL_CTX_new(TLS_server_method())) {
  const bool good = context_ && SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION) == 1 &&
                    SSL_CTX_use_certificate_chain_file(context_, certificate.c_str()) == 1 &&
                    SSL_CTX_use_PrivateKey_file(context_, key.c_str(), SSL_FILETYPE_PEM) == 1 &&
                    SSL_CTX_check_private_key(context_) == 1;
  if (good) {
    SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(context_, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    return;
  }
  ERR_clear_error();
  SSL_CTX_free(context_);
  bad_input("{} and {} are no certificate and its key", certificate, key);
}

ServerCertificate::~ServerCertificate() { SSL_CTX_free(context_); }

Connection::Connection(int socket, const ServerCertificate* certificate) : socket_(socket), awaited_(POLLIN) {
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
  const int yes = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (!certificate) return;
  ssl_ = SSL_new(certificate->context());
  if (!ssl_) return;  // then it is refused by its first read
  SSL_set_fd(ssl_, socket_);
  SSL_set_accept_state(ssl_);
}

Connection::~Connection() {
  SSL_free(ssl_);
  close(socket_);
}

Connection::Read Connection::read(std::string& text, std::size_t most) {
  const std::size_t before = text.size();
  bool ended = false;
  while (text.size() < most && !ended) {
    char piece[16 << 10];
    const std::size_t room = std::min(sizeof piece, most - text.size());
    std::ptrdiff_t got = -1;
    if (ssl_) {
      ERR_clear_error();
      got = SSL_read(ssl_, piece, static_cast<int>(room));
      const int error = got > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl_, static_cast<int>(got));
      awaited_ = error == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
      if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) break;
      ended = error != SSL_ERROR_NONE;
    } else {
      got = recv(socket_, piece, room, 0);
      if (got < 0 && would_block()) break;
      ended = got <= 0;
    }
    if (!ended) text.append(piece, static_cast<std::size_t>(got));
  }
  if (text.size() > before) return Read::bytes;
  return ended ? Read::ended : Read::nothing_yet;
}

std::ptrdiff_t Connection::write_some(std::string_view bytes) {
  if (bytes.empty()) return 0;
  if (ssl_) {
    ERR_clear_error();
    const int sent = SSL_write(ssl_, bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), 1 << 20)));
    if (sent > 0) return sent;
    const int error = SSL_get_error(ssl_, sent);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? 0 : -1;
  }
  const auto sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  return sent < 0 && would_block() ? 0 : sent;
}

bool Connection::wait_writable(double& time_left) {
  const double began = monotonic_seconds();
  pollfd look{socket_, POLLOUT, 0};
  const int found = poll(&look, 1, milliseconds(time_left));
  time_left -= monotonic_seconds() - began;
  return found == 1 && (look.revents & (POLLERR | POLLHUP)) == 0;
}

bool Connection::wait_readable(double seconds) {
  if (ssl_ && SSL_pending(ssl_) > 0) return true;
  pollfd look{socket_, POLLIN, 0};
  return poll(&look, 1, milliseconds(seconds)) == 1;
}

bool Connection::write(std::string_view bytes, double& time_left) {
  while (!bytes.empty()) {
    const auto sent = write_some(bytes);
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
    if (sent == 0 && (time_left <= 0 || !wait_writable(time_left))) return false;
  }
  return true;
}

void Connection::shut_down_writing() {
  if (ssl_ && SSL_is_init_finished(ssl_)) {
    ERR_clear_error();
    SSL_shutdown(ssl_);
  }
  shutdown(socket_, SHUT_WR);
}

}  // namespace echelon::http
