#include "models/answer_batch.h"

#include <gtest/gtest.h>

namespace echelon {
namespace {

TEST(AnswerBatch, IsTheNextMultipleOfSixteen) {
  EXPECT_EQ(models::answer_batch(1), 16);
  EXPECT_EQ(models::answer_batch(16), 16);
  EXPECT_EQ(models::answer_batch(17), 32);
}

}  // namespace
}  // namespace echelon
