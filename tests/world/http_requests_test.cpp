// Whole requests from many connections: where a request ends, and who is kept waiting by whom.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "world/http/requests.h"
#include "world/os/tasks.h"

namespace echelon::http {
namespace {

constexpr RequestLimits small_limits{.head_bytes = 200, .body_bytes = 1000};

RequestSize size_of(std::string_view text) { return request_size(text, small_limits); }

TEST(RequestSize, EndsAfterTheBlankLineAndTheBody) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\ncontent-LENGTH:  5\t\r\n\r\n", text = head + "12345";
  for (std::size_t n = 0; n < head.size(); ++n) EXPECT_EQ(size_of(text.substr(0, n)).bytes, 0u) << n;
  EXPECT_EQ(size_of(head).bytes, text.size());
  EXPECT_EQ(size_of(text + "GET / HTTP/1.1\r\n").bytes, text.size());
  EXPECT_EQ(size_of("GET / HTTP/1.1\r\n\r\n").bytes, 18u);
  EXPECT_TRUE(size_of("PUT / HTTP/1.1\r\nExpect: 100-Continue\r\n\r\n").waits_for_body);
}

TEST(RequestSize, RefusesWhatIsTooLongOrCouldBeReadInTwoWays) {
  const auto refused = [](const std::string& headers) {
    return size_of("GET / HTTP/1.1\r\n" + headers + "\r\n").refused;
  };
  EXPECT_EQ(size_of(std::string(200, 'a')).refused, 431);
  EXPECT_EQ(size_of("GET / HTTP/1.1\r\nA: " + std::string(200, 'a')).refused, 431);
  EXPECT_EQ(refused("Content-Length: 1001\r\n"), 413);
  EXPECT_EQ(refused("Content-Length: 1000\r\n"), 0);
  EXPECT_EQ(refused("Content-Length: 99999999999999999999\r\n"), 400);
  EXPECT_EQ(refused("Content-Length: -1\r\n"), 400);
  EXPECT_EQ(refused("Content-Length: 1\r\nContent-Length: 1\r\n"), 400);
  EXPECT_EQ(refused("Content-Length : 1\r\n"), 400);
  EXPECT_EQ(refused("A: 1\n"), 400);
  EXPECT_EQ(refused(" A: 1\r\n"), 400);
  EXPECT_EQ(refused("nothing\r\n"), 400);
  EXPECT_EQ(refused("Transfer-Encoding: chunked\r\n"), 411);
  EXPECT_EQ(size_of("\r\nGET / HTTP/1.1\r\n\r\n").refused, 400);
}

// A client on a socket pair.
struct TestClient {
  explicit TestClient(Requests& requests) {
    int pair[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    mine = pair[0];
    requests.take(pair[1]);
  }
  ~TestClient() { ::close(mine); }
  TestClient(const TestClient&) = delete;
  void say(std::string_view text) const {
    EXPECT_EQ(::send(mine, text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
  }
  std::string hear(std::size_t most) const {  // waits for it; "" at the end of the connection
    std::string text(most, '\0');
    const auto got = ::recv(mine, text.data(), most, 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }
  int mine;
};

Limits limits_of(int workers, std::size_t waiting) {
  Limits limits;
  limits.request = small_limits;
  limits.workers = workers;
  limits.waiting = waiting;
  limits.head_seconds = 3600;  // so that nothing here depends on the time
  return limits;
}

Requests::Answer echo() {
  return [](Connection& connection, std::string_view request) {
    double time_left = 10;
    return connection.write(request, time_left);
  };
}

constexpr std::string_view simple = "GET / HTTP/1.1\r\n\r\n";

TEST(HttpRequests, SlowClientsKeepNobodyWaiting) {
  Requests requests(limits_of(1, 100), nullptr, echo());
  std::vector<std::unique_ptr<TestClient>> slow;
  for (int i = 0; i < 50; ++i) {
    slow.push_back(std::make_unique<TestClient>(requests));
    slow.back()->say(simple.substr(0, static_cast<std::size_t>(i) % simple.size()));
  }
  const TestClient honest(requests);
  for (int i = 0; i < 3; ++i) {
    honest.say(simple);
    EXPECT_EQ(honest.hear(100), simple);
  }
  slow[1]->say(simple.substr(1));  // and it is not too late for a slow one
  EXPECT_EQ(slow[1]->hear(100), simple);
}

TEST(HttpRequests, OfTooManyThoseThatHaveWaitedLongestAreClosed) {
  Requests requests(limits_of(1, 4), nullptr, echo());
  std::vector<std::unique_ptr<TestClient>> slow;
  for (int i = 0; i < 10; ++i) slow.push_back(std::make_unique<TestClient>(requests));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(slow[static_cast<std::size_t>(i)]->hear(1), "") << i;
  slow.back()->say(simple);
  EXPECT_EQ(slow.back()->hear(100), simple);
}

TEST(HttpRequests, RefusedOnesAreToldWhyAndClosed) {
  Requests requests(limits_of(1, 4), nullptr, echo());
  const TestClient client(requests);
  client.say("POST / HTTP/1.1\r\nContent-Length: 5000\r\n\r\n");
  EXPECT_EQ(client.hear(1000).substr(0, 12), "HTTP/1.1 413");
  EXPECT_EQ(client.hear(1), "");
}

TEST(HttpRequests, RequestsBehindEachOtherAreAnsweredOneByOne) {
  std::atomic<int> count = 0;
  Requests requests(limits_of(2, 4), nullptr, [&](Connection& connection, std::string_view request) {
    EXPECT_EQ(request, simple);
    double time_left = 10;
    return connection.write(++count == 3 ? "!" : ".", time_left);
  });
  const TestClient client(requests);
  client.say(std::string(simple) + std::string(simple) + std::string(simple));
  for (const char* answer : {".", ".", "!"}) EXPECT_EQ(client.hear(1), answer);
}

TEST(HttpRequests, WhatIsReadyIsAnsweredBeforeTheEnd) {
  std::atomic<bool> go = false, begun = false;
  Requests requests(limits_of(1, 4), nullptr, [&](Connection& connection, std::string_view request) {
    begun = true;
    while (!go) sleep_really(1e-3);
    double time_left = 10;
    return connection.write(request, time_left);
  });
  const TestClient client(requests), silent(requests);
  client.say(simple);
  while (!begun) sleep_really(1e-3);
  const auto end = spawn_thread("end", [&] { requests.stop(); });
  EXPECT_EQ(silent.hear(1), "");
  go = true;
  end->join();
  EXPECT_EQ(client.hear(100), simple);
  EXPECT_EQ(client.hear(1), "");
}

}  // namespace
}  // namespace echelon::http
