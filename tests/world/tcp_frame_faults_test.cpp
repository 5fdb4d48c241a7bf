// What the receiving half of a TCP connection does with frames that were dropped, repeated, swapped, corrupted or sent
// by an earlier incarnation: over many seeds, what it delivered before is right, in order and once, and the fault
// itself is refused with BadFrame; nothing wrong is ever delivered.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <functional>

#include "base/random.h"
#include "world/os/clock.h"
#include "world/transport/tcp/frame_receiver.h"

namespace echelon::tcp {
namespace {

constexpr int from = 1, to = 0;
constexpr std::uint32_t epoch = 2;
constexpr std::size_t channels = 3, count = 40;  // messages

struct TestCarrier final : Carrier {
  void abandon(Transfer&) override {}
};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : stream_({seed, 0, 0, stream_layer("tcp_frame_faults_test")}) {}
  std::uint32_t below(std::uint32_t n) { return stream_.below(n, next_++); }

 private:
  Stream stream_;
  std::uint64_t next_ = 0;
};

using Bytes = std::vector<std::byte>;

struct TestMessage {
  Channel channel = 0;
  Bytes bytes;
};

std::vector<TestMessage> make_messages(Dice& dice) {
  std::vector<TestMessage> messages(count);
  for (TestMessage& m : messages) {
    m.channel = dice.below(channels);
    m.bytes.resize(1 + dice.below(200));
    for (std::byte& b : m.bytes) b = static_cast<std::byte>(dice.below(256));
  }
  return messages;
}

// The frames of these messages as a sender writes them, one by one.
std::vector<Bytes> frames_of(const std::vector<TestMessage>& messages, std::uint32_t of_epoch) {
  FrameSender sender(from, to, of_epoch);
  std::vector<Bytes> frames;
  std::array<std::uint32_t, channels> numbers{};
  for (const TestMessage& m : messages) {
    EXPECT_TRUE(sender.send_copy(m.channel, {.number = numbers[m.channel]++}, m.bytes));
    Bytes& frame = frames.emplace_back();
    std::array<iovec, 3> pieces;
    for (std::size_t n; (n = sender.gather(pieces)) > 0;) {
      const auto* begin = static_cast<const std::byte*>(pieces[0].iov_base);
      frame.insert(frame.end(), begin, begin + pieces[0].iov_len);
      sender.advance(pieces[0].iov_len);
    }
  }
  return frames;
}

void feed(FrameReceiver& receiver, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::array<iovec, 2> room;
    ASSERT_GT(receiver.room(room), 0u);
    const std::size_t n = std::min(bytes.size(), room[0].iov_len);
    std::memcpy(room[0].iov_base, bytes.data(), n);
    bytes = bytes.subspan(n);
    receiver.advance(n);
  }
}

struct Outcome {
  bool refused = false;
  std::size_t delivered = 0;
};

// Some receives begin before their messages arrive, the others after.
Outcome deliver(const std::vector<TestMessage>& messages, const std::vector<Bytes>& frames, Dice& dice) {
  const auto clock = make_real_clock();
  const FirstFailure failure;
  TestCarrier carrier;
  TransferPool pool(failure, *clock);
  FrameSender answers(to, from, epoch);
  FrameReceiver receiver(from, to, epoch, answers, [](const FrameHeader&, std::span<const std::byte>) {});
  std::deque<Bytes> memory;
  std::vector<Transfer*> receives;
  std::array<std::uint32_t, channels> numbers{};
  const auto begin_receive = [&](const TestMessage& m) {
    Bytes& into = memory.emplace_back(m.bytes.size());
    Transfer& t = pool.take({carrier, from, m.channel, {.number = numbers[m.channel]++}}, into.data(), into.size(), {});
    receiver.receive(t);
    receives.push_back(&t);
  };
  const std::size_t before = dice.below(count);
  for (std::size_t i = 0; i < before; ++i) begin_receive(messages[i]);
  Outcome outcome;
  try {
    for (const Bytes& frame : frames) feed(receiver, frame);
  } catch (const BadFrame&) {
    outcome.refused = true;
  }
  for (std::size_t i = before; i < count; ++i) begin_receive(messages[i]);
  for (std::size_t i = 0; i < count; ++i) {
    Transfer& t = *receives[i];
    if (t.settled()) {
      EXPECT_EQ(t.state.load(), Transfer::done) << t.problem;
      EXPECT_EQ(memory[i], messages[i].bytes) << "message " << i;
      ++outcome.delivered;
    } else {
      receiver.abandon(t);
    }
    pool.give_back(t);
  }
  return outcome;
}

// Does something to the frame at `at`.
using Fault = std::function<void(std::vector<Bytes>& frames, std::size_t at, Dice& dice)>;

void expect_refused(const Fault& fault) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Dice dice(seed);
    const std::vector<TestMessage> messages = make_messages(dice);
    std::vector<Bytes> frames = frames_of(messages, epoch);
    const std::size_t at = dice.below(count - channels - 1);
    fault(frames, at, dice);
    const Outcome outcome = deliver(messages, frames, dice);
    EXPECT_TRUE(outcome.refused) << "seed " << seed;
    EXPECT_GE(outcome.delivered, at) << "seed " << seed;
    EXPECT_LT(outcome.delivered, count) << "seed " << seed;
  }
}

// The next frame on the same channel, so that a fault in the order shows.
std::size_t next_on_channel(const std::vector<Bytes>& frames, std::size_t at) {
  const Channel channel = decode_header(frames[at]).channel;
  for (std::size_t i = at + 1; i < frames.size(); ++i)
    if (decode_header(frames[i]).channel == channel) return i;
  return at;
}

TEST(TcpFrameFaults, WithoutOneAllIsDelivered) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Dice dice(seed);
    const std::vector<TestMessage> messages = make_messages(dice);
    const Outcome outcome = deliver(messages, frames_of(messages, epoch), dice);
    EXPECT_FALSE(outcome.refused);
    EXPECT_EQ(outcome.delivered, count);
  }
}

TEST(TcpFrameFaults, ADroppedFrameIsMissed) {
  expect_refused([](std::vector<Bytes>& frames, std::size_t at, Dice&) {
    if (next_on_channel(frames, at) == at)  // nothing follows on its channel that could show it
      frames[at].back() ^= std::byte{1};
    else
      frames.erase(frames.begin() + static_cast<std::ptrdiff_t>(at));
  });
}

TEST(TcpFrameFaults, ARepeatedFrameIsRefused) {
  expect_refused([](std::vector<Bytes>& frames, std::size_t at, Dice&) {
    frames.insert(frames.begin() + static_cast<std::ptrdiff_t>(at), frames[at]);
  });
}

TEST(TcpFrameFaults, AFrameThatOvertookAnotherIsRefused) {
  expect_refused([](std::vector<Bytes>& frames, std::size_t at, Dice&) {
    if (const std::size_t later = next_on_channel(frames, at); later != at)
      std::swap(frames[at], frames[later]);
    else
      frames[at].back() ^= std::byte{1};
  });
}

TEST(TcpFrameFaults, ACorruptedFrameIsRefused) {
  expect_refused([](std::vector<Bytes>& frames, std::size_t at, Dice& dice) {
    Bytes& frame = frames[at];
    const std::size_t first = dice.below(static_cast<std::uint32_t>(8 * frame.size()));
    for (std::size_t bit = first; bit < std::min(first + 1 + dice.below(8), 8 * frame.size()); ++bit)
      frame[bit / 8] ^= std::byte{1} << (bit % 8);
  });
}

TEST(TcpFrameFaults, AFrameOfAnEarlierIncarnationIsRefused) {
  expect_refused([](std::vector<Bytes>& frames, std::size_t at, Dice&) {
    FrameHeader header = decode_header(frames[at]);
    Bytes payload(frames[at].begin() + frame_header_bytes, frames[at].end());
    header.epoch = epoch - 1;
    for (std::byte& b : payload) b ^= std::byte{0x55};
    seal(header, payload);
    const FrameHeaderBytes head = encode_header(header);
    payload.insert(payload.begin(), head.begin(), head.end());
    frames.insert(frames.begin() + static_cast<std::ptrdiff_t>(at), payload);
  });
}

}  // namespace
}  // namespace echelon::tcp
