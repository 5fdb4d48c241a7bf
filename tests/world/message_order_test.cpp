// What a rank notes about the order of its messages, another process in its place repeats.

#include "world/mailbox/message_order.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace echelon {
namespace {

using Next = MessageOrder::Next;

struct Memory {
  Memory() : bytes(std::make_unique<Line[]>(MessageOrder::bytes() / sizeof(Line))) {}
  std::span<std::byte> span() {
    return std::as_writable_bytes(std::span(bytes.get(), MessageOrder::bytes() / sizeof(Line)));
  }
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  std::unique_ptr<Line[]> bytes;
};

// What a task of channel 0 does next that looks for messages: "-" nothing is there, "*" anything may happen, or the
// sender.
std::string look(MessageOrder& order) {
  MessageOrder::Event event;
  switch (order.next(0, event, true)) {
    case Next::nothing: return "-";
    case Next::anything: return "*";
    case Next::this_one: break;
  }
  order.took(0, event);
  return std::to_string(event.from);
}

std::string looks(MessageOrder& order, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += look(order);
  return all;
}

TEST(MessageOrder, IsRepeatedFromItsMarkAndThenGoesOn) {
  Memory memory;
  MessageOrder first(memory.span(), 1);
  first.took(0, {.from = 7});
  first.missed(0);
  first.mark(4);
  first.missed(0), first.missed(0);
  first.took(0, {.from = 3});
  first.took(0, {.from = 5});
  first.missed(0);

  MessageOrder second(memory.span(), 1);
  ASSERT_TRUE(second.rewind(4));
  EXPECT_EQ(second.noted(), 2u);
  EXPECT_TRUE(second.repeats());
  EXPECT_EQ(looks(second, 6), "--35-*");
  EXPECT_FALSE(second.repeats());
  second.missed(0);
  second.took(0, {.from = 9});

  MessageOrder third(memory.span(), 1);
  ASSERT_TRUE(third.rewind(4));
  EXPECT_EQ(looks(third, 8), "--35--9*");
}

TEST(MessageOrder, AMarkMadeWhileItIsRepeatedStandsWhereItStoodBefore) {
  Memory memory;
  MessageOrder first(memory.span(), 1);
  first.mark(1);
  for (const std::uint16_t from : {1, 2, 3}) first.took(0, {.from = from});
  MessageOrder second(memory.span(), 1);
  ASSERT_TRUE(second.rewind(1));
  second.mark(2);  // the state with which it begins is kept anew
  EXPECT_EQ(looks(second, 1), "1");
  second.mark(3);
  MessageOrder third(memory.span(), 1), fourth(memory.span(), 1);
  ASSERT_TRUE(third.rewind(2));
  EXPECT_EQ(looks(third, 4), "123*");
  ASSERT_TRUE(fourth.rewind(3));
  EXPECT_EQ(looks(fourth, 3), "23*");
}

TEST(MessageOrder, WhoeverTakesWithoutLookingLeavesOutWhatWasLookedForInVain) {
  Memory memory;
  MessageOrder first(memory.span(), 1);
  first.mark(1);
  first.missed(0);
  first.took(0, {.from = 6});
  MessageOrder second(memory.span(), 1);
  ASSERT_TRUE(second.rewind(1));
  MessageOrder::Event event;
  EXPECT_EQ(second.next(0, event, false), Next::this_one);
  EXPECT_EQ(event.from, 6);
}

TEST(MessageOrder, IsNotRepeatedFromElsewhere) {
  Memory memory;
  MessageOrder first(memory.span(), 1);
  first.mark(1);
  first.took(0, {.from = 6});
  MessageOrder other(memory.span(), 2), same(memory.span(), 1);
  EXPECT_FALSE(other.rewind(1)) << "another rank's";
  EXPECT_FALSE(same.rewind(2)) << "another state";
  EXPECT_FALSE(same.rewind(0));
  EXPECT_EQ(looks(same, 1), "*");
  for (std::size_t i = 0; i < MessageOrder::most_events / 2 + 1; ++i) same.took(0, {.from = 1});
  EXPECT_TRUE(same.is_nearly_full());
  for (std::size_t i = 0; i < MessageOrder::most_events; ++i) same.took(0, {.from = 1});
  EXPECT_FALSE(MessageOrder(memory.span(), 1).rewind(1)) << "too long ago";
}

TEST(MessageOrder, AbandonedItDropsTheRestAndNotesWhatHappensInstead) {
  Memory memory;
  MessageOrder first(memory.span(), 1);
  first.mark(1);
  for (const std::uint16_t from : {1, 2, 3}) first.took(0, {.from = from});
  MessageOrder second(memory.span(), 1);
  ASSERT_TRUE(second.rewind(1));
  EXPECT_EQ(looks(second, 1), "1");
  second.abandon();
  EXPECT_EQ(looks(second, 1), "*");
  second.took(0, {.from = 8});
  MessageOrder third(memory.span(), 1);
  ASSERT_TRUE(third.rewind(1));
  EXPECT_EQ(looks(third, 3), "18*");
}

TEST(MessageOrder, WhatWasLearntIsLearntAgain) {
  Memory memory;
  const int channel = MessageOrder::stop_channel;
  MessageOrder first(memory.span(), 1);
  first.mark(1);
  for (const std::uint32_t number : {0, 0, 4, 0}) EXPECT_EQ(first.learn(channel, number), number);
  MessageOrder second(memory.span(), 1);
  ASSERT_TRUE(second.rewind(1));
  for (const std::uint32_t number : {0, 0, 4, 0}) EXPECT_EQ(second.learn(channel, 9), number);
  EXPECT_EQ(second.learn(channel, 9), 9u);
}

}  // namespace
}  // namespace echelon
