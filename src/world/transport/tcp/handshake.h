#pragma once
// The first bytes on every connection, before either side trusts the other. Both prove that they know the job's secret
// without sending it, over fresh random numbers:
//
//   dialler -> listener   Hello      what I am (role), who I am, whom I want, which job, my fresh number
//   listener -> dialler   Challenge  my fresh number, and HMAC(secret, "listener", Hello, my number, channel)
//   dialler -> listener   Proof      HMAC(secret, "dialler", Hello, listener's number, channel)
//   listener -> dialler   Entered    one byte: the connection counts from now on, for both
//
// A dialler that finds the listener's proof wrong sends zeros for its own, so that both sides can say so.
// Without the last byte a dialler could believe in a connection that the listener, whose timeout for the handshake is
// short, has closed while the proof was on its way. So until that byte arrives the dialler tries again.
//
// `channel` is a value that only the two ends of a TLS connection can compute (RFC 5705); empty without TLS. So a man
// in the middle who ends the TLS on both sides fails, a recorded handshake cannot be replayed (the numbers are fresh),
// a proof cannot be reflected to its sender (the words differ), and a proof for one job, role, rank or version does not
// serve for another (they are in the Hello).
//
// Sizes are fixed, so nothing is allocated before the proof. Here are only the bytes and the proofs: pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "world/transport/tcp/secret.h"

namespace echelon::tcp {

constexpr std::uint16_t protocol_version = 3;
constexpr std::byte entered{1};

enum class Role : std::uint8_t {
  node = 1,  // the launcher of a machine, at the rendezvous
  rank = 2,  // a rank, at another rank
};

struct Hello {
  Role role = Role::node;
  std::uint16_t version = protocol_version;
  std::int32_t from = -1, to = -1;  // ranks; -1 for nodes
  Bytes32 job = {};                 // SHA-256 of the job's name
  Bytes32 nonce = {};

  friend bool operator==(const Hello&, const Hello&) = default;
};

enum class Verdict : std::uint8_t {
  welcome,
  other_version,
  other_job,
  not_expected,
  too_many,
  needs_tls,  // the listener encrypts, the dialler does not; both are said without TLS
  no_tls,     // the other way round
};

// The first byte tells a Hello or a Challenge without TLS from a TLS connection.
constexpr std::byte first_plain_byte{'E'}, first_tls_byte{0x16};

struct Challenge {
  Verdict verdict = Verdict::welcome;  // anything else: the listener hangs up, and this is why
  std::uint16_t version = protocol_version;
  Bytes32 nonce = {};
  Bytes32 proof = {};

  friend bool operator==(const Challenge&, const Challenge&) = default;
};

constexpr std::size_t hello_bytes = 80, challenge_bytes = 72;
using HelloBytes = std::array<std::byte, hello_bytes>;
using ChallengeBytes = std::array<std::byte, challenge_bytes>;

class BadHandshake : public Failure {
  using Failure::Failure;
};

HelloBytes encode(const Hello& hello);
ChallengeBytes encode(const Challenge& challenge);
Hello decode_hello(std::span<const std::byte, hello_bytes> bytes);              // throws BadHandshake
Challenge decode_challenge(std::span<const std::byte, challenge_bytes> bytes);  // throws BadHandshake

Bytes32 listener_proof(const Secret&, const Hello&, const Bytes32& listener_nonce, std::span<const std::byte> channel);
Bytes32 dialler_proof(const Secret&, const Hello&, const Bytes32& listener_nonce, std::span<const std::byte> channel);

}  // namespace echelon::tcp
