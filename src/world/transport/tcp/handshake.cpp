#include "world/transport/tcp/handshake.h"

#include "world/transport/fields.h"

namespace echelon::tcp {

namespace {

constexpr std::uint32_t hello_magic = 0x48484345, challenge_magic = 0x43484345;  // "ECHH", "ECHC"

Bytes32 proof(const Secret& secret, std::string_view side, const Hello& hello, const Bytes32& nonce,
              std::span<const std::byte> channel) {
  return hmac(secret, {std::as_bytes(std::span(side)), encode(hello), nonce, channel});
}

}  // namespace

HelloBytes encode(const Hello& h) {
  HelloBytes bytes{};
  FieldWriter out(bytes);
  out.put(hello_magic).put(h.version).put(h.role).put(std::uint8_t{0}).put(h.from).put(h.to).put(h.job).put(h.nonce);
  return bytes;
}

ChallengeBytes encode(const Challenge& c) {
  ChallengeBytes bytes{};
  FieldWriter out(bytes);
  out.put(challenge_magic).put(c.version).put(c.verdict).put(std::uint8_t{0}).put(c.nonce).put(c.proof);
  return bytes;
}

Hello decode_hello(std::span<const std::byte, hello_bytes> bytes) {
  FieldReader in(bytes);
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
  FieldReader in(bytes);
  if (in.get<std::uint32_t>() != challenge_magic) throw BadHandshake("this is not Echelon answering");
  Challenge c;
  c.version = in.get<std::uint16_t>();
  const auto verdict = in.get<std::uint8_t>();
  const auto zero = in.get<std::uint8_t>();
  if (verdict > static_cast<std::uint8_t>(Verdict::no_tls) || zero != 0) {
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
