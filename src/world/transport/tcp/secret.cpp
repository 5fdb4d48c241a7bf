#include "world/transport/tcp/secret.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace echelon::tcp {

namespace {

constexpr std::size_t hex_digits = 64;
constexpr int fewest_different_bytes = 12;  // of 32; random ones have about 30, and fewer than 12 once in 2^80
constexpr const char* digits = "0123456789abcdef";

Bytes32 entropy() {
  Bytes32 bytes;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) != 1) {
    fail("the operating system gives no random numbers");
  }
  return bytes;
}

int value_of(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Secret make_secret() { return {entropy()}; }
Bytes32 make_nonce() { return entropy(); }

std::string to_hex(const Secret& secret) {
  std::string hex;
  for (const std::byte b : secret.bytes) {
    hex += digits[static_cast<unsigned>(b) >> 4];
    hex += digits[static_cast<unsigned>(b) & 15];
  }
  return hex;
}

Secret parse_secret(std::string_view hex, std::string_view where_from) {
  while (!hex.empty() && (hex.back() == '\n' || hex.back() == '\r' || hex.back() == ' ')) hex.remove_suffix(1);
  Secret secret;
  bool good = hex.size() == hex_digits;
  for (std::size_t i = 0; good && i < secret.bytes.size(); ++i) {
    const int high = value_of(hex[2 * i]), low = value_of(hex[2 * i + 1]);
    good = high >= 0 && low >= 0;
    secret.bytes[i] = static_cast<std::byte>(high * 16 + low);
  }
  if (!good) {
    bad_input(
        "{} holds no job secret: expected {} hexadecimal digits, found {} characters. "
        "`echelon secret FILE` makes one",
        where_from, hex_digits, hex.size());
  }
  std::array<bool, 256> seen{};
  for (const std::byte b : secret.bytes) seen[static_cast<std::size_t>(b)] = true;
  if (std::ranges::count(seen, true) < fewest_different_bytes) {
    bad_input("{} holds a secret that anybody could guess: it is no random number. `echelon secret FILE` makes one",
              where_from);
  }
  return secret;
}

Secret read_secret_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) bad_input("the secret file {} cannot be read: {}", path, std::strerror(errno));
  struct stat facts;
  if (::fstat(file.get(), &facts) != 0) bad_input("the secret file {}: {}", path, std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) bad_input("the secret file {} is no regular file", path);
  if (facts.st_uid != ::geteuid()) bad_input("the secret file {} belongs to another user", path);
  if (facts.st_mode & 077) {
    bad_input("the secret file {} has mode {:04o}, so others may read it: chmod 600 {}", path, facts.st_mode & 07777,
              path);
  }
  char text[256];
  const ssize_t n = ::read(file.get(), text, sizeof text);
  if (n < 0) bad_input("the secret file {} cannot be read: {}", path, std::strerror(errno));
  const Secret secret = parse_secret({text, static_cast<std::size_t>(n)}, "the secret file " + path);
  OPENSSL_cleanse(text, sizeof text);
  return secret;
}

void write_secret_file(const std::string& path, const Secret& secret) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) bad_input("the secret file {} cannot be made: {}", path, std::strerror(errno));
  const std::string text = to_hex(secret) + "\n";
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    fail("the secret file {} cannot be written: {}", path, std::strerror(errno));
  }
}

Bytes32 hmac(const Secret& secret, std::initializer_list<std::span<const std::byte>> parts) {
  std::vector<std::byte> message;
  for (const auto part : parts) {
    const std::uint64_t size = part.size();
    const auto length = std::as_bytes(std::span(&size, 1));
    message.insert(message.end(), length.begin(), length.end());
    message.insert(message.end(), part.begin(), part.end());
  }
  Bytes32 mac;
  unsigned size = 0;
  const auto* done = HMAC(EVP_sha256(), secret.bytes.data(), static_cast<int>(secret.bytes.size()),
                          reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                          reinterpret_cast<unsigned char*>(mac.data()), &size);
  if (!done || size != mac.size()) fail("OpenSSL computes no HMAC");
  return mac;
}

bool same(const Bytes32& a, const Bytes32& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

Secret derive(const Secret& secret, std::string_view purpose, std::span<const std::byte> context) {
  return {hmac(secret, {std::as_bytes(std::span(purpose)), context})};
}

Bytes32 sha256(std::string_view text) {
  Bytes32 digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

}  // namespace echelon::tcp
