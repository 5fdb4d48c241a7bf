#include "base/access.h"

#include <gtest/gtest.h>

namespace echelon {
namespace {

TEST(Access, KnowsThisMachinesAddresses) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "localhost", "::1", "[::1]", "LOCALHOST"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"0.0.0.0", "10.0.0.1", "::", "127.0.0.1.evil.example", "localhost.evil.example", ""})
    EXPECT_FALSE(is_loopback(host)) << host;
}

TEST(Access, ComparesSecretsWhole) {
  EXPECT_TRUE(same_secret("Bearer abc", "Bearer abc"));
  for (const char* given : {"", "Bearer ab", "Bearer abd", "Bearer abcBearer abc"})
    EXPECT_FALSE(same_secret(given, "Bearer abc")) << given;
  EXPECT_FALSE(same_secret("", ""));
}

}  // namespace
}  // namespace echelon
