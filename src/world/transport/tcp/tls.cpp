#include "world/transport/tcp/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace echelon::tcp {

namespace {

constexpr std::size_t buffer_bytes = std::size_t{256} << 10;
constexpr std::size_t record_room = (std::size_t{16} << 10) + 512;  // the longest record with all that surrounds it

[[noreturn]] void tls_failed(const char* what) {
  char text[256] = "no reason given";
  if (const auto code = ERR_get_error()) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  fail("TLS: {}: {}", what, text);
}

template <auto free_function>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    free_function(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;

Certificate make_certificate(EVP_PKEY* key) {
  Certificate certificate(X509_new());
  if (!certificate) tls_failed("no certificate");
  constexpr long day = 24 * 3600;
  X509* x = certificate.get();
  X509_set_version(x, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
  X509_gmtime_adj(X509_getm_notBefore(x), -day);
  X509_gmtime_adj(X509_getm_notAfter(x), 3650 * day);
  X509_set_pubkey(x, key);
  X509_NAME* name = X509_get_subject_name(x);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("echelon"), -1, -1, 0);
  X509_set_issuer_name(x, name);
  if (X509_sign(x, key, EVP_sha256()) == 0) tls_failed("the certificate cannot be signed");
  return certificate;
}

}  // namespace

// OpenSSL's side of the session's buffers.
struct SessionBio {
  static int write(BIO* bio, const char* data, int size) {
    auto& s = *static_cast<TlsSession*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (s.out_.size() - s.out_end_ < static_cast<std::size_t>(size)) s.flush();
    const std::size_t n = std::min(static_cast<std::size_t>(size), s.out_.size() - s.out_end_);
    if (n == 0) {
      BIO_set_retry_write(bio);
      return -1;
    }
    std::memcpy(s.out_.data() + s.out_end_, data, n);
    s.out_end_ += n;
    return static_cast<int>(n);
  }
  static int read(BIO* bio, char* into, int size) {
    auto& s = *static_cast<TlsSession*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (s.in_at_ == s.in_end_ && s.fill() != Flow::done) {
      if (s.closed_) return 0;
      BIO_set_retry_read(bio);
      return -1;
    }
    const std::size_t n = std::min(static_cast<std::size_t>(size), s.in_end_ - s.in_at_);
    std::memcpy(into, s.in_.data() + s.in_at_, n);
    s.in_at_ += n;
    return static_cast<int>(n);
  }
  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }
  static int create(BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
  }
  static const BIO_METHOD* method() {
    static const BIO_METHOD* const made = [] {
      BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "echelon");
      if (!m) tls_failed("no BIO");
      BIO_meth_set_write(m, write);
      BIO_meth_set_read(m, read);
      BIO_meth_set_ctrl(m, control);
      BIO_meth_set_create(m, create);
      return m;
    }();
    return made;
  }
};

Tls::Tls() : context_(SSL_CTX_new(TLS_method())) {
  if (!context_) tls_failed("no context");
  const Key key(EVP_EC_gen("P-256"));
  if (!key) tls_failed("no key");
  SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION);
  SSL_CTX_set_verify(context_, SSL_VERIFY_NONE, nullptr);  // see the header: the handshake after it verifies
  SSL_CTX_set_num_tickets(context_, 0);
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_early_data(context_, 0);
  SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_ciphersuites(context_, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  if (SSL_CTX_use_certificate(context_, make_certificate(key.get()).get()) != 1 ||
      SSL_CTX_use_PrivateKey(context_, key.get()) != 1) {
    SSL_CTX_free(context_);
    tls_failed("the certificate cannot be used");
  }
}

Tls::~Tls() { SSL_CTX_free(context_); }

std::unique_ptr<TlsSession> Tls::accept(int socket) const {
  SSL* ssl = SSL_new(context_);
  if (!ssl) tls_failed("no session");
  SSL_set_accept_state(ssl);
  return std::make_unique<TlsSession>(ssl, socket);
}

std::unique_ptr<TlsSession> Tls::connect(int socket) const {
  SSL* ssl = SSL_new(context_);
  if (!ssl) tls_failed("no session");
  SSL_set_connect_state(ssl);
  return std::make_unique<TlsSession>(ssl, socket);
}

TlsSession::TlsSession(SSL* ssl, int socket) : ssl_(ssl), socket_(socket), in_(record_room), out_(2 * record_room) {
  BIO* bio = BIO_new(SessionBio::method());
  if (!bio) tls_failed("no BIO");
  BIO_set_data(bio, this);
  SSL_set_bio(ssl_, bio, bio);
}

TlsSession::~TlsSession() { SSL_free(ssl_); }

Flow TlsSession::fill() {
  in_at_ = in_end_ = 0;
  ssize_t n;
  do n = ::recv(socket_, in_.data(), in_.size(), 0);
  while (n < 0 && errno == EINTR);
  if (n > 0) {
    in_end_ = static_cast<std::size_t>(n);
    return Flow::done;
  }
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Flow::wants_input;
  closed_ = true;
  return Flow::closed;
}

Flow TlsSession::flush() {
  while (out_at_ < out_end_) {
    const ssize_t n = ::send(socket_, out_.data() + out_at_, out_end_ - out_at_, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      std::memmove(out_.data(), out_.data() + out_at_, out_end_ - out_at_);
      out_end_ -= std::exchange(out_at_, 0);
      return Flow::wants_output;
    }
    if (n < 0) {
      closed_ = true;
      return Flow::closed;
    }
    out_at_ += static_cast<std::size_t>(n);
  }
  out_at_ = out_end_ = 0;
  return Flow::done;
}

Flow TlsSession::handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (const Flow left = flush(); left != Flow::done) return left;
  if (result == 1) {  // from now on many records at once
    in_.resize(in_end_ > 0 ? std::max(in_.size(), buffer_bytes) : buffer_bytes);
    out_.resize(buffer_bytes);
    return Flow::done;
  }
  const int error = SSL_get_error(ssl_, result);
  return error == SSL_ERROR_WANT_READ ? Flow::wants_input : Flow::closed;
}

Bytes32 TlsSession::channel_binding() const {
  constexpr std::string_view label = "EXPORTER-echelon-handshake";
  Bytes32 binding;
  if (SSL_export_keying_material(ssl_, reinterpret_cast<unsigned char*>(binding.data()), binding.size(), label.data(),
                                 label.size(), nullptr, 0, 0) != 1) {
    tls_failed("no keying material");
  }
  return binding;
}

Flow TlsSession::read(std::span<std::byte> into, std::size_t& bytes) {
  bytes = 0;
  ERR_clear_error();
  while (bytes < into.size()) {
    std::size_t n = 0;
    const int result = SSL_read_ex(ssl_, into.data() + bytes, into.size() - bytes, &n);
    if (result != 1) {
      const int error = SSL_get_error(ssl_, result);
      if (bytes > 0) return Flow::done;  // the reason comes back at the next call
      return error == SSL_ERROR_WANT_READ && !closed_ ? Flow::wants_input : Flow::closed;
    }
    bytes += n;
  }
  return Flow::done;
}

Flow TlsSession::write(std::span<const std::byte> from, std::size_t& bytes) {
  bytes = 0;
  ERR_clear_error();
  while (bytes < from.size()) {
    // With room for a whole record OpenSSL never has to keep half of one.
    if (out_.size() - out_end_ < record_room) {
      const Flow left = flush();
      if (left == Flow::closed) return left;
      if (out_.size() - out_end_ < record_room) return bytes > 0 ? Flow::done : Flow::wants_output;
    }
    std::size_t n = 0;
    if (SSL_write_ex(ssl_, from.data() + bytes, from.size() - bytes, &n) != 1) return Flow::closed;
    bytes += n;
  }
  return Flow::done;
}

}  // namespace echelon::tcp
