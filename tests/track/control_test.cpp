#include "track/control.h"

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace echelon {
namespace {

TEST(Control, ARequestIsTakenOnceAndWhatIsNoneIsTakenAwayToo) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  const auto clock = make_real_clock();
  const RunFolder run{dir.path()};
  ControlReader reader(*disk, *clock, run);
  send_control(*disk, run, {.action = "rate", .value = 0.5});
  EXPECT_THROW(send_control(*disk, run, {.action = "stop"}), BadInput);  // one at a time
  const auto request = reader.take();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->action, "rate");
  EXPECT_EQ(request->value, 0.5);
  EXPECT_FALSE(reader.take());
  for (const std::string& text : {std::string("{"), std::string("[]"), std::string(R"({"action": 7})"),
                                  std::string(R"({"action": "rate", "value": -1})"), std::string(100'000, ' ')}) {
    write_file_atomically(*disk, run.control(), text);
    EXPECT_FALSE(reader.take()) << text.substr(0, 50);
    EXPECT_FALSE(disk->exists(run.control())) << "nobody could ask anything any more: " << text.substr(0, 50);
  }
  disk->make_directories(run.control());
  EXPECT_FALSE(reader.take());
}

}  // namespace
}  // namespace echelon
