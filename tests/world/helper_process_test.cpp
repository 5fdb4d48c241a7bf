#include "world/os/helper_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

namespace echelon {
namespace {

std::span<std::byte> bytes_of(int& number) { return std::as_writable_bytes(std::span(&number, 1)); }

TEST(HelperProcess, HasACopyOfTheMemoryAndAnswers) {
  int here = 5;
  HelperProcess helper("helper", [&](ByteStream& stream) {
    for (int asked = 0; stream.read(bytes_of(asked));) {
      here += asked;
      stream.write(bytes_of(here));
    }
  });
  for (const int expected : {7, 9}) {
    int number = 2;
    ASSERT_TRUE(helper.stream().write(bytes_of(number)));
    ASSERT_TRUE(helper.stream().read(bytes_of(number)));
    EXPECT_EQ(number, expected);
  }
  EXPECT_EQ(here, 5);
  helper.stream().shut();
  EXPECT_EQ(helper.end(), "has ended with exit code 0");
}

TEST(HelperProcess, ItsDeathIsSeenAndNamed) {
  HelperProcess helper("helper", [](ByteStream& stream) {
    int number = 0;
    stream.read(bytes_of(number));
  });
  kill(helper.process(), SIGKILL);
  int number = 0;
  EXPECT_FALSE(helper.stream().read(bytes_of(number)));
  EXPECT_EQ(helper.end(), "was killed by signal 9 (Killed)");
  EXPECT_FALSE(helper.stream().write(bytes_of(number)));
}

TEST(HelperProcess, DiesWithItsOwner) {
  int process = 0;
  {
    HelperProcess helper("helper", [](ByteStream& stream) {
      int number = 0;
      stream.read(bytes_of(number));
    });
    process = helper.process();
    EXPECT_EQ(kill(process, 0), 0);
  }
  EXPECT_EQ(kill(process, 0), -1);
}

TEST(HelperProcess, AFailureOfItsBodyIsAnExitCode) {
  HelperProcess helper("helper", [](ByteStream&) { throw std::runtime_error("it cannot go on"); });
  EXPECT_EQ(helper.end(), "has ended with exit code 1");
}

}  // namespace
}  // namespace echelon
