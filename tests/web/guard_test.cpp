#include "web/guard.h"

#include <gtest/gtest.h>

namespace echelon::web {
namespace {

const std::string token(64, 'a');

GuardSettings settings() {
  return {.hosts = {"127.0.0.1:6006", "localhost:6006"}, .scheme = "http", .token = token, .token_for_reading = false};
}

RequestHead head(const std::string& method = "GET", const std::string& path = "/api/runs") {
  return {.method = method,
          .path = path,
          .host = "localhost:6006",
          .origin = "",
          .authorization = "",
          .content_type = "application/json"};
}

int status_of(const GuardSettings& s, const RequestHead& h) {
  int status = 200;
  return refuse(s, h, status).empty() ? 200 : status;
}

TEST(Guard, ReadingNeedsTheRightHostAndNoToken) {
  EXPECT_EQ(status_of(settings(), head()), 200);
  for (const char* host :
       {"", "evil.example", "evil.example:6006", "localhost", "localhost:6007", "localhost:6006.evil.example"}) {
    RequestHead h = head();
    h.host = host;
    EXPECT_EQ(status_of(settings(), h), 403) << host;
  }
  RequestHead h = head();
  h.host = "LOCALHOST:6006";
  EXPECT_EQ(status_of(settings(), h), 200);
}

TEST(Guard, ScriptsOfOtherPagesAreRefusedAlsoForReading) {
  for (const char* origin :
       {"http://evil.example", "null", "https://localhost:6006", "http://localhost:80", "http://localhost:6006/"}) {
    RequestHead h = head();
    h.origin = origin;
    EXPECT_EQ(status_of(settings(), h), 403) << origin;
  }
  RequestHead h = head();
  h.origin = "http://localhost:6006";
  EXPECT_EQ(status_of(settings(), h), 200);
}

TEST(Guard, ChangingNeedsTheWholeTokenAndJson) {
  RequestHead h = head("POST", "/api/label");
  for (const std::string& given :
       std::vector<std::string>{std::string(), "Bearer ", "Bearer " + token.substr(1), "Bearer " + token + "a",
                                "Basic " + token, token, "Bearer " + std::string(64, 'b')}) {
    h.authorization = given;
    EXPECT_EQ(status_of(settings(), h), 401) << given;
  }
  h.authorization = "Bearer " + token;
  EXPECT_EQ(status_of(settings(), h), 200);
  h.content_type = "text/plain";  // what a form of another page can send without being asked
  EXPECT_EQ(status_of(settings(), h), 415);
}

TEST(Guard, AnEmptyTokenOpensNothing) {
  GuardSettings s = settings();
  s.token.clear();
  RequestHead h = head("POST", "/api/label");
  h.authorization = "Bearer ";
  EXPECT_EQ(status_of(s, h), 401);
}

TEST(Guard, OtherMethodsAreRefused) {
  for (const char* method : {"PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"})
    EXPECT_EQ(status_of(settings(), head(method)), 405) << method;
}

TEST(Guard, BeyondThisMachineReadingNeedsTheTokenToo) {
  GuardSettings s = settings();
  s.token_for_reading = true;
  EXPECT_EQ(status_of(s, head()), 401);
  EXPECT_EQ(status_of(s, head("GET", "/metrics")), 401);
  EXPECT_EQ(status_of(s, head("GET", "/index.html")), 200);  // no data in it
  RequestHead h = head();
  h.authorization = "Bearer " + token;
  EXPECT_EQ(status_of(s, h), 200);
}

TEST(Guard, NothingIsLoadedFromElsewhere) {
  std::string policy;
  for (const auto& [name, value] : safe_headers())
    if (name == "Content-Security-Policy") policy = value;
  EXPECT_TRUE(policy.starts_with("default-src 'self';"));
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
}

}  // namespace
}  // namespace echelon::web
