#include "world/os/command.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "tests/support/says.h"
#include "tests/support/temp_dir.h"
#include "world/os/disk.h"

namespace echelon {
namespace {

Command command(std::vector<std::string> argv) {
  Command c;
  c.argv = std::move(argv);
  return c;
}

std::string failure_of(const Command& c) {
  try {
    run_command(c);
  } catch (const Failure& e) {
    return e.what();
  }
  return "";
}

TEST(Command, GivesBackWhatItSaysAndHowItEnds) {
  const auto r = run_command(command({"sh", "-c", "echo out; echo err >&2; exit 7"}));
  EXPECT_EQ(r.exit_code, 7);
  EXPECT_EQ(r.output, "out\nerr\n");
  EXPECT_EQ(run_command(command({"sh", "-c", "kill -9 $$"})).exit_code, 137);
}

TEST(Command, NoShellSeesTheArguments) {
  EXPECT_EQ(run_command(command({"printf", "%s", "$(echo x) ; * \"'"})).output, "$(echo x) ; * \"'");
}

TEST(Command, RunsInItsDirectoryWithNothingOnItsInput) {
  const test::TempDir dir;
  auto c = command({"sh", "-c", "pwd; cat"});
  c.directory = dir.path();
  EXPECT_EQ(run_command(c).output, dir.path() + "\n");
}

TEST(Command, KeepsTheEndOfALongStory) {
  const auto r = run_command(command({"sh", "-c", "i=0; while [ $i -lt 40000 ]; do echo line $i; i=$((i+1)); done"}));
  EXPECT_LE(r.output.size(), 64u << 10);
  EXPECT_TRUE(r.output.ends_with("line 39999\n"));
}

TEST(Command, MissingProgramsAndEndlessOnesAreNamed) {
  EXPECT_TRUE(test::says(failure_of(command({"no-such-program-anywhere"})), "cannot run 'no-such-program-anywhere'"));
  auto c = command({"sleep", "1000"});
  c.limit_seconds = 0.05;
  EXPECT_TRUE(test::says(failure_of(c), "'sleep' was stopped"));
}

// It is asked for by a tick.
TEST(Command, IsAskedToEndAndMaySayGoodbye) {
  const test::TempDir dir;
  std::atomic<bool> stop = false;
  Command c = command({"sh", "-c", "trap 'echo goodbye; exit 7' TERM; touch \"$0\"; while :; do sleep 0.05; done",
                       dir.path() + "/ready"});
  c.stop = &stop;
  const auto disk = make_real_disk();
  c.tick = [&] { stop = stop || disk->exists(dir.path() + "/ready"); };
  const CommandResult result = run_command(c);
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_EQ(result.output, "goodbye\n");
}

}  // namespace
}  // namespace echelon
