#include "world/transport/tcp/handshake.h"

#include <cstring>

namespace echelon::tcp {

namespace {

constexpr std::uint32_t hello_magic = 0x48484345, challenge_magic = 0x43484345;  // "ECHH", "ECHC"

template <typename Array>
class Writer {
 public:
  template <typename T>
  Writer& put(const T& value) {
    std::memcpy(bytes.data() + at_, &value, sizeof value);
    at_ += sizeof value;
    return *this;
  }
  Array bytes{};

 private:
  std::size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T get() {
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

Bytes32 proof(const Secret& secret, std::string_view side, const Hello& hello, const Bytes32& nonce,
              std::span<const std::byte> channel) {
  return hmac(secret, {std::as_bytes(std::span(side)), encode(hello), nonce, channel});
}

}  // namespace

HelloBytes encode(const Hello& h) {
  Writer<HelloBytes> out;
  out.put(hello_magic).put(h.version).put(h.role).put(std::uint8_t{0}).put(h.from).put(h.to).put(h.job).put(h.nonce);
  return out.bytes;
}

ChallengeBytes encode(const Challenge& c) {
  Writer<ChallengeBytes> out;
  out.put(challenge_magic).put(c.version).put(c.verdict).put(std::uint8_t{0}).put(c.nonce).put(c.proof);
  return out.bytes;
}

Hello decode_hello(std::span<const std::byte, hello_bytes> bytes) {
  Reader in(bytes);
  if (in.get<std::uint32_t>() != hello_magic) throw BadHandshake("this is not Echelon speaking");
  Hello h;
  h.version = in.get<std::uint16_t>();
  const auto role = in.get<std::uint8_t>();
  const auto zero = in.get<std::uint8_t>();
  if ((role != static_cast<std::uint8_t>(Role::node) && role != static_cast<std::uint8_t>(Role::rank)) || zero != 0) {
    throw BadHandshake(fmt::format("unknown role {}.{}", role, zero));
  }
  h.role = static_cast<Role>(role);
  h.from = in.get<std::int32_t>();
  h.to = in.get<std::int32_t>();
  h.job = in.get<Bytes32>();
  h.nonce = in.get<Bytes32>();
  return h;
}

Challenge decode_challenge(std::span<const std::byte, challenge_bytes> bytes) {
  Reader in(bytes);
  if (in.get<std::uint32_t>() != challenge_magic) throw BadHandshake("this is not Echelon answering");
  Challenge c;
  c.version = in.get<std::uint16_t>();
  const auto verdict = in.get<std::uint8_t>();
  const auto zero = in.get<std::uint8_t>();
  if (verdict > static_cast<std::uint8_t>(Verdict::too_many) || zero != 0) {
    throw BadHandshake(fmt::format("unknown verdict {}.{}", verdict, zero));
  }
  c.verdict = static_cast<Verdict>(verdict);
  c.nonce = in.get<Bytes32>();
  c.proof = in.get<Bytes32>();
  return c;
}

Bytes32 listener_proof(const Secret& secret, const Hello& hello, const Bytes32& nonce,
                       std::span<const std::byte> channel) {
  return proof(secret, "listener", hello, nonce, channel);
}

Bytes32 dialler_proof(const Secret& secret, const Hello& hello, const Bytes32& nonce,
                      std::span<const std::byte> channel) {
  return proof(secret, "dialler", hello, nonce, channel);
}

}  // namespace echelon::tcp
