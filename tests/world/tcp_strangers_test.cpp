// Strangers at the listener: they neither get in, nor keep a friend out, nor stay.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>

#include "tests/support/says.h"
#include "tests/world/messages.h"
#include "tests/world/tcp_threads.h"

namespace echelon::tcp {
namespace {

using test::listen_on_loopback;

// A socket that knows nothing of Echelon.
class Stranger {
 public:
  explicit Stranger(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  Stranger(Stranger&& other) noexcept : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}
  ~Stranger() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool connected() const { return connected_; }
  bool say(std::span<const std::byte> bytes) {
    return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  bool say(std::string_view text) { return say(std::as_bytes(std::span(text))); }
  // All that comes until the other side hangs up.
  std::vector<std::byte> listen() {
    std::vector<std::byte> heard;
    std::byte buffer[4096];
    for (ssize_t n; (n = ::recv(fd_, buffer, sizeof buffer, 0)) > 0;) heard.insert(heard.end(), buffer, buffer + n);
    return heard;
  }
  bool hung_up() {
    pollfd look = {fd_, POLLIN, 0};
    std::byte b;
    return ::poll(&look, 1, 0) == 1 && ::recv(fd_, &b, 1, MSG_DONTWAIT) <= 0;
  }

 private:
  int fd_;
  bool connected_ = false;
};

Credentials make_credentials(bool tls) {
  Credentials credentials;
  credentials.secret = make_secret();
  credentials.job = sha256("job");
  if (tls) credentials.tls = std::make_shared<const Tls>();
  return credentials;
}

// A listener with somebody who counts the friends that come in.
class House {
 public:
  explicit House(const Credentials& credentials, std::function<void(const std::string&)> tell = {}) {
    asio::ip::tcp::acceptor acceptor(io_);
    acceptor.assign(asio::ip::tcp::v4(), listen_on_loopback(port_));
    listener_ = std::make_unique<Listener>(
        std::move(acceptor), credentials, [](const Hello&) { return Verdict::welcome; },
        [this](Wire wire, const Hello&) {
          ++friends_;
          inside_.push_back(std::move(wire));
        },
        std::move(tell));
    thread_ = std::thread([this] { io_.run(); });
  }
  ~House() {
    asio::post(io_, [this] { listener_->close(); });
    asio::post(io_, [this] { io_.stop(); });
    thread_.join();
  }
  std::uint16_t port() const { return port_; }
  int friends() const { return friends_; }

 private:
  asio::io_context io_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Listener> listener_;
  std::vector<Wire> inside_;
  std::atomic<int> friends_ = 0;
  std::thread thread_;
};

// "" if we were let in, otherwise what was said.
std::string knock(std::uint16_t port, const Credentials& credentials, double seconds = 600) {
  asio::io_context io;
  std::string said;
  Hello hello;
  hello.role = Role::rank;
  hello.from = 1;
  hello.to = 0;
  const asio::ip::tcp::endpoint at(asio::ip::make_address("127.0.0.1"), port);
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        try {
          co_await dial(at, credentials, hello, std::chrono::steady_clock::now() + seconds_duration(seconds));
        } catch (const std::exception& e) {
          said = e.what();
        }
      },
      asio::detached);
  io.run();
  return said;
}

void wait_for(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

class TcpStrangers : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Wire, TcpStrangers, testing::Bool(),
                         [](const auto& info) { return info.param ? "Tls" : "Plain"; });

TEST_P(TcpStrangers, AFriendComesIn) {
  const Credentials credentials = make_credentials(GetParam());
  House house(credentials);
  ASSERT_EQ(knock(house.port(), credentials), "");
  wait_for([&] { return house.friends() == 1; });
}

// A listener whose timeout ends while the dialler's proof is on its way: it hangs up on somebody who has done all that
// was asked of him. Then dials again, instead of taking a connection for good that is none.
TEST_P(TcpStrangers, WhoIsHungUpOnWithTheProofInHandKnocksAgain) {
  const Credentials credentials = make_credentials(GetParam());
  asio::io_context io;
  std::uint16_t port = 0;
  asio::ip::tcp::acceptor acceptor(io);
  acceptor.assign(asio::ip::tcp::v4(), listen_on_loopback(port));
  std::unique_ptr<Listener> listener;
  std::vector<Wire> inside;
  bool proven = false;
  const auto close_after_the_proof = [&]() -> asio::awaitable<void> {
    Wire wire(co_await acceptor.async_accept(asio::use_awaitable));
    std::vector<std::byte> channel;
    if (credentials.tls) {
      wire.use_tls(credentials.tls->accept(wire.socket().native_handle()));
      for (Flow f = wire.handshake(); f != Flow::done; f = wire.handshake()) co_await wire.wait_for(f);
      const Bytes32 binding = wire.tls()->channel_binding();
      channel.assign(binding.begin(), binding.end());
    }
    HelloBytes first;
    co_await wire.read_all(first);
    Challenge challenge;
    challenge.nonce = make_nonce();
    challenge.proof = listener_proof(credentials.secret, decode_hello(first), challenge.nonce, channel);
    co_await wire.write_all(encode(challenge));
    Bytes32 proof;
    co_await wire.read_all(proof);
    proven = same(proof, dialler_proof(credentials.secret, decode_hello(first), challenge.nonce, channel));
    wire.socket().close();
    listener = std::make_unique<Listener>(
        std::move(acceptor), credentials, [](const Hello&) { return Verdict::welcome; },
        [&](Wire w, const Hello&) { inside.push_back(std::move(w)), listener->close(); });
  };
  asio::co_spawn(io, close_after_the_proof(), asio::detached);
  std::thread io_thread([&] { io.run(); });
  EXPECT_EQ(knock(port, credentials), "");
  io_thread.join();
  EXPECT_TRUE(proven);
  EXPECT_EQ(inside.size(), 1u);
}

TEST_P(TcpStrangers, GarbageIsShownOut) {
  Credentials credentials = make_credentials(GetParam());
  credentials.handshake_seconds = 1;  // enough for a friend on a busy machine too
  House house(credentials);
  const Stream noise({3, 0, 0, 0});
  std::vector<Stranger> crowd;
  for (std::uint32_t i = 0; i < 40; ++i) {
    crowd.emplace_back(house.port());
    std::vector<std::byte> bytes(std::size_t{1} << (i % 18));
    for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<std::byte>(noise.bits(i * 4096 + k % 4096));
    crowd.back().say(bytes);
  }
  crowd.emplace_back(house.port()).say("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  crowd.emplace_back(house.port()).say(std::string(hello_bytes, '\0'));
  for (auto& stranger : crowd) stranger.listen();  // ends when the listener is shut in their faces
  ASSERT_EQ(knock(house.port(), credentials), "");
  wait_for([&] { return house.friends() == 1; });
}

TEST_P(TcpStrangers, WhoSpeaksTooSlowlyIsShownOut) {
  Credentials credentials = make_credentials(GetParam());
  credentials.handshake_seconds = 0.3;
  House house(credentials);
  Stranger slow(house.port());
  const auto hello = encode(Hello{});
  std::size_t said = 0;
  while (!slow.hung_up() && said < hello.size()) {  // all of it would take sixteen seconds
    slow.say(std::span(hello).subspan(said++, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  EXPECT_LT(said, hello.size());
}

// More silent ones than there are places: those who have been there longest make room, and a friend comes in at once.
TEST_P(TcpStrangers, ACrowdOfSilentOnesKeepsNobodyOut) {
  Credentials credentials = make_credentials(GetParam());
  credentials.handshake_seconds = 1000;
  credentials.max_strangers = 16;
  House house(credentials);
  std::vector<Stranger> crowd;
  for (int i = 0; i < 300; ++i) crowd.emplace_back(house.port());
  credentials.handshake_seconds = 5;
  ASSERT_EQ(knock(house.port(), credentials), "");
  wait_for([&] { return house.friends() == 1; });
  wait_for([&] { return crowd[0].hung_up() && crowd[200].hung_up(); });
}

TEST_P(TcpStrangers, WhoHasAnotherSecretOrJobIsToldAndStaysOutside) {
  const Credentials credentials = make_credentials(GetParam());
  House house(credentials);
  Credentials other = credentials;
  other.secret = make_secret();
  EXPECT_TRUE(test::says(knock(house.port(), other), "does not have the same secret"));
  other = credentials;
  other.job = sha256("another");
  EXPECT_TRUE(test::says(knock(house.port(), other), "another job"));
  EXPECT_EQ(house.friends(), 0);
}

// What the listener tells its user.
class Told {
 public:
  std::function<void(const std::string&)> teller() {
    return [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      told_ += text + "\n";
      ++times_;
    };
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  int times() {
    const std::lock_guard lock(mutex_);
    return times_;
  }

 private:
  std::mutex mutex_;
  std::string told_;
  int times_ = 0;
};

TEST(TcpStrangersMixed, PlainAndTlsSayToEachOtherWhyTheyDoNotMeet) {
  const Credentials credentials = make_credentials(true);
  Credentials plain = credentials;
  plain.tls = nullptr;
  Told told_with, told_without;
  House with(credentials, told_with.teller()), without(plain, told_without.teller());
  EXPECT_TRUE(test::says(knock(with.port(), plain), "it encrypts its connections with TLS and this side does not"));
  EXPECT_TRUE(test::says(knock(without.port(), credentials), "it does not encrypt its connections and this side does"));
  wait_for([&] { return told_with.times() == 1 && told_without.times() == 1; });
  EXPECT_TRUE(test::says(told_with.text(), "127.0.0.1 connects without TLS, which this job uses"));
  EXPECT_TRUE(test::says(told_without.text(), "127.0.0.1 connects with TLS, which this job does not use"));
  EXPECT_EQ(with.friends() + without.friends(), 0);
}

TEST_P(TcpStrangers, TheListenerTellsOfAnotherSecretOrJobOnceInAWhile) {
  const Credentials credentials = make_credentials(GetParam());
  Told told;
  House house(credentials, told.teller());
  for (int i = 0; i < 5; ++i) {
    Credentials other = credentials;
    other.secret = make_secret();
    knock(house.port(), other);
    other = credentials;
    other.job = sha256("another");
    knock(house.port(), other);
  }
  ASSERT_EQ(knock(house.port(), credentials), "");
  EXPECT_TRUE(test::says(told.text(), "127.0.0.1 does not have this job's secret"));
  EXPECT_TRUE(test::says(told.text(), "127.0.0.1 asks for another job"));
  EXPECT_LT(told.times(), 10);  // not for each of them
}

// The oldest of the same address makes room, also if there is room for others.
TEST_P(TcpStrangers, OneAddressHasOnlySoManyPlaces) {
  Credentials credentials = make_credentials(GetParam());
  credentials.handshake_seconds = 1000;
  credentials.max_strangers = 1000;
  credentials.max_per_address = 4;
  House house(credentials);
  std::vector<Stranger> crowd;
  for (int i = 0; i < 10; ++i) crowd.emplace_back(house.port());
  wait_for([&] { return std::ranges::count_if(crowd, [](Stranger& s) { return s.hung_up(); }) == 6; });
  ASSERT_EQ(knock(house.port(), credentials), "");
}

TEST(TcpStrangersLimits, AStrangerHasTwoSecondsAndOneAddressHasNotAllPlaces) {
  const Credentials credentials{};
  EXPECT_LE(credentials.handshake_seconds, 2);
  EXPECT_LT(credentials.max_per_address, credentials.max_strangers);
}

// An address that is held and closed is given up after a while; the others are tried until the end.
TEST(TcpDial, WhereNobodyListensItGivesUpEarlyOnlyIfAskedTo) {
  std::uint16_t port = 0;
  const int socket = listen_on_loopback(port);
  ::shutdown(socket, SHUT_RDWR);
  const Credentials credentials = make_credentials(false);
  const auto dial_for = [&](double seconds, double closed_seconds) {
    asio::io_context io;
    std::string kind = "nothing";
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
          try {
            const asio::ip::tcp::endpoint at(asio::ip::make_address("127.0.0.1"), port);
            co_await dial(at, credentials, {}, std::chrono::steady_clock::now() + seconds_duration(seconds),
                          closed_seconds);
          } catch (const NobodyListens&) {
            kind = "nobody";
          } catch (const Failure&) {
            kind = "too late";
          }
        },
        asio::detached);
    io.run();
    return kind;
  };
  EXPECT_EQ(dial_for(1000, 0.1), "nobody");
  EXPECT_EQ(dial_for(0.5, 1000), "too late");
  ::close(socket);
}

// Somebody in the middle: connects to the house for everyone who connects to him.
class Middle {
 public:
  Middle(std::uint16_t to, std::shared_ptr<const Tls> tls) {
    asio::ip::tcp::acceptor acceptor(io_);
    acceptor.assign(asio::ip::tcp::v4(), listen_on_loopback(port_));
    asio::co_spawn(io_, serve(std::move(acceptor), to, std::move(tls)), asio::detached);
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Middle() {
    io_.stop();
    thread_.join();
  }
  std::uint16_t port() const { return port_; }
  std::vector<std::byte> overheard() {  // from the dialler
    const std::lock_guard lock(mutex_);
    return overheard_;
  }

 private:
  static asio::awaitable<void> shake(Wire& wire) {
    for (Flow f = wire.tls()->handshake(); f != Flow::done; f = wire.tls()->handshake()) co_await wire.wait_for(f);
  }
  asio::awaitable<void> pass(std::shared_ptr<Wire> from, std::shared_ptr<Wire> to, bool record) {
    try {
      for (;;) {
        std::byte b;
        co_await from->read_all({&b, 1});
        if (record) {
          const std::lock_guard lock(mutex_);
          overheard_.push_back(b);
        }
        co_await to->write_all({&b, 1});
      }
    } catch (const std::exception&) {
      std::error_code ignored;
      to->socket().close(ignored);
    }
  }
  asio::awaitable<void> serve(asio::ip::tcp::acceptor acceptor, std::uint16_t port, std::shared_ptr<const Tls> tls) {
    for (;;) {
      auto left = std::make_shared<Wire>(co_await acceptor.async_accept(asio::use_awaitable));
      asio::ip::tcp::socket socket(io_);
      co_await socket.async_connect({asio::ip::make_address("127.0.0.1"), port}, asio::use_awaitable);
      auto right = std::make_shared<Wire>(std::move(socket));
      if (tls) {
        left->use_tls(tls->accept(left->socket().native_handle()));
        right->use_tls(tls->connect(right->socket().native_handle()));
        co_await shake(*right);
        co_await shake(*left);
      }
      asio::co_spawn(io_, pass(left, right, true), asio::detached);
      asio::co_spawn(io_, pass(right, left, false), asio::detached);
    }
  }

  asio::io_context io_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::vector<std::byte> overheard_;
  std::thread thread_;
};

TEST(TcpReplay, ARecordedConversationIsWorthNothing) {
  const Credentials credentials = make_credentials(false);
  House house(credentials);
  Middle middle(house.port(), nullptr);
  ASSERT_EQ(knock(middle.port(), credentials), "");
  wait_for([&] { return house.friends() == 1; });
  const auto recorded = middle.overheard();
  ASSERT_EQ(recorded.size(), hello_bytes + sizeof(Bytes32));
  for (int i = 0; i < 5; ++i) {
    Stranger replay(house.port());
    ASSERT_TRUE(replay.say(recorded));
    EXPECT_EQ(replay.listen().size(), challenge_bytes);  // and then it hangs up
  }
  EXPECT_EQ(house.friends(), 1);
}

TEST(TcpMiddle, WhoEndsTheTlsOnBothSidesIsFoundOut) {
  const Credentials credentials = make_credentials(true);
  House house(credentials);
  Middle middle(house.port(), std::make_shared<const Tls>());
  EXPECT_TRUE(test::says(knock(middle.port(), credentials), "the connection is intercepted"));
  EXPECT_EQ(house.friends(), 0);
}

std::size_t open_descriptors() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

// A job that forms while strangers of every kind press against its listener; once it is whole, no listener is left.
TEST(TcpSiege, TheJobFormsRunsAndLeavesNothingOpen) {
  const std::size_t before = open_descriptors();
  {
    const auto configs = test::make_configs(3);
    std::vector<std::uint16_t> ports;
    for (const auto& peer : configs[0].table.peers) ports.push_back(peer.port);
    std::atomic<bool> over = false;
    std::atomic<int> attempts = 0;
    std::thread attacker([&] {
      std::vector<Stranger> silent;
      const Credentials wrong = make_credentials(false);
      for (std::uint32_t i = 0; !over; ++i) {
        const std::uint16_t port = ports[i % 3];
        if (i % 7 == 0) knock(port, wrong, 0.01);
        Stranger s(port);
        if (!s.connected()) continue;
        ++attempts;
        if (i % 3 == 0)
          silent.push_back(std::move(s));
        else if (i % 3 == 1)
          s.say(std::string(100000, 'x'));
        if (silent.size() > 100) silent.clear();
      }
    });
    wait_for([&] { return attempts > 50; });
    std::atomic<int> open_listeners = 0;
    const auto failures = test::run_ranks(configs, [&](World& w) {
      std::vector<std::byte> out(100000, static_cast<std::byte>(w.rank())), in(100000);
      for (std::uint32_t i = 0; i < 50; ++i) {
        Work a = w.send((w.rank() + 1) % 3, 0, {OperationKind::plain, 0, 0, i}, out);
        Work b = w.receive((w.rank() + 2) % 3, 0, {OperationKind::plain, 0, 0, i}, in);
        if (!a.wait(test::forever) || !b.wait(test::forever)) fail("too late");
        if (in[99999] != static_cast<std::byte>((w.rank() + 2) % 3)) fail("wrong bytes");
      }
      if (Stranger(ports[static_cast<std::size_t>(w.rank())]).connected()) ++open_listeners;
    });
    over = true;
    attacker.join();
    for (const auto& f : failures) EXPECT_EQ(test::text_of(f), "");
    EXPECT_EQ(open_listeners, 0);
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace echelon::tcp
