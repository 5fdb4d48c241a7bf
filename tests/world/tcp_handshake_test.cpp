// The bytes and proofs of the handshake, without any socket; and the job's secret.

#include "world/transport/tcp/handshake.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/says.h"
#include "tests/support/temp_dir.h"

namespace echelon::tcp {
namespace {

Hello example() {
  Hello h;
  h.role = Role::rank;
  h.from = 3;
  h.to = 1;
  h.job = sha256("job");
  h.nonce = make_nonce();
  return h;
}

TEST(TcpHandshake, WhatIsWrittenIsRead) {
  const Hello h = example();
  EXPECT_EQ(decode_hello(encode(h)), h);
  Challenge c;
  c.nonce = make_nonce();
  c.proof = make_nonce();
  c.verdict = Verdict::not_expected;
  EXPECT_EQ(decode_challenge(encode(c)), c);
}

// Whoever changes one bit on the way has a message that is refused or proves something else.
TEST(TcpHandshake, EveryBitOfTheHelloIsProven) {
  const Secret secret = make_secret();
  const Bytes32 nonce = make_nonce();
  const Hello h = example();
  const Bytes32 good = dialler_proof(secret, h, nonce, {});
  for (std::size_t bit = 0; bit < 8 * hello_bytes; ++bit) {
    HelloBytes bytes = encode(h);
    bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    try {
      EXPECT_FALSE(same(dialler_proof(secret, decode_hello(bytes), nonce, {}), good)) << bit;
    } catch (const BadHandshake&) {
    }
  }
}

TEST(TcpHandshake, AProofServesNothingElse) {
  const Secret secret = make_secret();
  const Hello h = example();
  const Bytes32 nonce = make_nonce(), channel = make_nonce();
  const Bytes32 good = dialler_proof(secret, h, nonce, channel);
  EXPECT_TRUE(same(good, dialler_proof(secret, h, nonce, channel)));
  EXPECT_FALSE(same(good, listener_proof(secret, h, nonce, channel)));  // cannot be sent back to its maker
  EXPECT_FALSE(same(good, dialler_proof(secret, h, make_nonce(), channel)));
  EXPECT_FALSE(same(good, dialler_proof(secret, h, nonce, make_nonce())));
  EXPECT_FALSE(same(good, dialler_proof(secret, h, nonce, {})));
  EXPECT_FALSE(same(good, dialler_proof(make_secret(), h, nonce, channel)));
  for (const auto change : {+[](Hello& x) { x.role = Role::node; }, +[](Hello& x) { x.from = 4; },
                            +[](Hello& x) { x.to = 2; }, +[](Hello& x) { ++x.version; },
                            +[](Hello& x) { x.job = sha256("another"); }, +[](Hello& x) { x.nonce = make_nonce(); }}) {
    Hello other = h;
    change(other);
    EXPECT_FALSE(same(good, dialler_proof(secret, other, nonce, channel)));
  }
}

// RFC 4231, test case 2 would need a short key; what we can check is that parts cannot be moved into each other.
TEST(TcpHandshake, PartsOfAProofDoNotRunIntoEachOther) {
  const Secret secret = make_secret();
  const auto bytes = [](std::string_view s) { return std::as_bytes(std::span(s)); };
  EXPECT_FALSE(same(hmac(secret, {bytes("ab"), bytes("c")}), hmac(secret, {bytes("a"), bytes("bc")})));
  EXPECT_FALSE(same(derive(secret, "a", {}).bytes, derive(secret, "b", {}).bytes));
}

TEST(TcpSecret, AFileThatOthersMayReadIsRefused) {
  const test::TempDir dir;
  const std::string path = dir.path() + "/secret";
  const Secret secret = make_secret();
  write_secret_file(path, secret);
  struct stat facts;
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0600u);
  EXPECT_EQ(read_secret_file(path).bytes, secret.bytes);
  EXPECT_TRUE(test::says(test::complaint_of([&] { write_secret_file(path, secret); }), "exists"));
  for (const unsigned mode : {0640u, 0604u, 0660u, 0601u}) {
    ::chmod(path.c_str(), mode);
    EXPECT_TRUE(test::says(test::complaint_of([&] { read_secret_file(path); }), "chmod 600"));
  }
  ::chmod(path.c_str(), 0400);
  EXPECT_EQ(read_secret_file(path).bytes, secret.bytes);
  const std::string link = dir.path() + "/link";
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  EXPECT_NE(test::complaint_of([&] { read_secret_file(link); }), "");
}

TEST(TcpSecret, WhatAnybodyCouldGuessIsRefused) {
  for (const std::string& weak : {std::string(64, '0'), std::string(64, 'f'),
                                  std::string("0123456789abcdef0123456789abcdef"
                                              "0123456789abcdef0123456789abcdef")})
    EXPECT_TRUE(test::says(test::complaint_of([&] { parse_secret(weak, "x"); }), "anybody could guess"));
  for (int i = 0; i < 100; ++i) EXPECT_NO_THROW(parse_secret(to_hex(make_secret()), "x"));
}

TEST(TcpSecret, AnythingButSixtyFourDigitsIsRefusedWithoutRepeatingIt) {
  const std::string good = to_hex(make_secret());
  EXPECT_EQ(to_hex(parse_secret(good, "x")), good);
  EXPECT_EQ(to_hex(parse_secret(good + "\n", "x")), good);
  for (const std::string& bad : {std::string(), good.substr(1), good + "0", "g" + good.substr(1)}) {
    const std::string said = test::complaint_of([&] { parse_secret(bad, "ECHELON_SECRET"); });
    EXPECT_TRUE(test::says(said, "ECHELON_SECRET holds no job secret"));
    EXPECT_TRUE(bad.empty() || said.find(bad) == std::string::npos);
  }
}

}  // namespace
}  // namespace echelon::tcp
