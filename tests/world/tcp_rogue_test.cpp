// Members of the job that do not keep to the rules.

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/says.h"
#include "tests/world/messages.h"
#include "tests/world/tcp_threads.h"
#include "world/transport/frame.h"

namespace echelon::tcp {
namespace {

// One who has the secret but does not keep to the rules is one rank's failure, not a crash. Plays rank 1 of two.
class TcpRogue : public testing::Test {
 protected:
  // What rank 0 says when the rogue has done `mischief` with its connection.
  std::string rank_zero_says(const std::function<asio::awaitable<void>(Wire&)>& mischief, double silence = 1e6) {
    const auto configs = test::make_configs(2, {.silence_seconds = silence});
    ::close(configs[1].listener);
    std::string said;
    std::thread zero([&] {
      const auto failures = test::run_ranks({configs[0]}, [](World& w) {
        std::vector<std::byte> into(1 << 20);
        w.receive(1, 0, {OperationKind::all_reduce, 1, 0, 7}, into).wait(test::forever);
      });
      said = test::text_of(failures[0]);
    });
    asio::io_context io;
    Credentials credentials = configs[0].credentials;
    credentials.secret = derive(credentials.secret, "session", configs[0].table.session);
    Hello hello;
    hello.role = Role::rank;
    hello.from = 1;
    hello.to = 0;
    const asio::ip::tcp::endpoint at(asio::ip::make_address("127.0.0.1"), configs[0].table.peers[0].port);
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
          Wire wire =
              co_await dial(at, credentials, hello, std::chrono::steady_clock::now() + std::chrono::seconds(30));
          co_await mischief(wire);
          std::vector<std::byte> rest(1);
          try {
            for (;;) co_await wire.read_all(rest);  // until it hangs up
          } catch (const std::exception&) {
          }
        },
        asio::detached);
    io.run();
    zero.join();
    return said;
  }

  static FrameHeader header() {
    FrameHeader h;
    h.from = 1;
    h.to = 0;
    h.epoch = 1;
    h.label = {OperationKind::all_reduce, 1, 0, 7};
    return h;
  }
};

TEST_F(TcpRogue, LengthsThatNobodyHasAreRefusedBeforeAnythingIsAllocated) {
  for (const std::uint64_t bytes : {std::uint64_t{1} << 31, ~std::uint64_t{0}, std::uint64_t{262145}}) {
    const std::string said = rank_zero_says([&](Wire& wire) -> asio::awaitable<void> {
      FrameHeader h = header();
      h.payload_bytes = h.message_bytes = bytes;
      const auto sealed = encode_header(h);
      co_await wire.write_all(sealed);
    });
    EXPECT_TRUE(test::says(said, "rank 1 was lost (what it sends is damaged: a frame of"));
    EXPECT_TRUE(test::says(said, "during all-reduce 7"));
  }
}

TEST_F(TcpRogue, DamagedBytesAreFound) {
  const std::string said = rank_zero_says([&](Wire& wire) -> asio::awaitable<void> {
    std::vector<std::byte> payload(1000, std::byte{5});
    FrameHeader h = header();
    h.channel = 5;  // where nobody waits: on the other one its size alone would be wrong
    seal(h, payload);
    const auto sealed = encode_header(h);
    payload[500] ^= std::byte{1};
    co_await wire.write_all(sealed);
    co_await wire.write_all(payload);
  });
  EXPECT_TRUE(test::says(said, "checksum"));
}

TEST_F(TcpRogue, MoreThanTheWindowUnaskedIsRefused) {
  const std::string said = rank_zero_says([&](Wire& wire) -> asio::awaitable<void> {
    const std::vector<std::byte> payload(60000, std::byte{5});
    for (std::uint64_t i = 0; i < 20; ++i) {
      FrameHeader h = header();
      h.channel = 5;
      h.sequence = i;
      seal(h, payload);
      const auto sealed = encode_header(h);
      co_await wire.write_all(sealed);
      co_await wire.write_all(payload);
    }
  });
  EXPECT_TRUE(test::says(said, "an unexpected message of"));
}

TEST_F(TcpRogue, OneThatSaysNothingIsLost) {
  const std::string said = rank_zero_says([&](Wire&) -> asio::awaitable<void> { co_return; }, 0.6);
  EXPECT_TRUE(test::says(said, "rank 1 was lost (nothing was heard of it for 0.6 s) during all-reduce 7"));
}

}  // namespace
}  // namespace echelon::tcp
