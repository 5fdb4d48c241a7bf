#include "world/transport/frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/crc32c.h"
#include "base/random.h"

namespace echelon {
namespace {

std::vector<std::byte> random_bytes(const Stream& random, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(random.bits(100 + i));
  return bytes;
}

FrameHeader random_header(const Stream& r) {
  FrameHeader h{.kind = static_cast<FrameKind>(r.below(frame_kinds, 0)),
                .from = r.bits(1) >> 1,
                .to = r.bits(2) >> 1,
                .epoch = r.bits(3),
                .channel = r.bits(4)};
  h.label = {static_cast<OperationKind>(r.below(10, 5)), static_cast<std::uint8_t>(r.below(5, 6)),
             static_cast<std::uint16_t>(r.bits(7)), r.bits(8)};
  h.sequence = (std::uint64_t{r.bits(9)} << 32) | r.bits(10);
  h.acknowledged = (std::uint64_t{r.bits(11)} << 32) | r.bits(12);
  h.offset = r.bits(13);
  h.message_bytes = h.offset + 10'000;
  return h;
}

FrameFault fault_of(std::span<const std::byte> bytes, const FrameLimits& limits = {}) {
  try {
    decode_header(bytes, limits);
  } catch (const BadFrame& bad) {
    return bad.fault();
  }
  ADD_FAILURE() << "was believed";
  return FrameFault::too_short;
}

// Writes `value` at `at` and makes the checksum right again, as a stranger would.
template <typename T>
FrameHeaderBytes forged(FrameHeaderBytes bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
  const std::uint32_t crc = crc32c(std::span(bytes).first(frame_header_bytes - 4));
  std::memcpy(bytes.data() + frame_header_bytes - 4, &crc, 4);
  return bytes;
}

TEST(Frame, WhatGoesInComesOut) {
  for (std::uint32_t seed = 0; seed < 1000; ++seed) {
    const Stream random({seed, 0, 0, stream_layer("frame")});
    const auto payload = random_bytes(random, random.below(300, 50));
    FrameHeader h = random_header(random);
    seal(h, payload);
    EXPECT_EQ(decode_header(encode_header(h)), h);
    check_payload(h, payload);
  }
}

// The layout is a promise to other versions and machines: these bytes may only change with the version.
TEST(Frame, LayoutIsWhatTheHeaderSays) {
  FrameHeader h{.kind = FrameKind::ack, .from = 0x01020304, .to = 5, .epoch = 6, .channel = 7};
  h.label = {OperationKind::all_reduce, 1, 0x0203, 0x04050607};
  h.sequence = 0x1122334455667788;
  seal(h, {});
  const auto bytes = encode_header(h);
  const auto at = [&](std::size_t i) { return static_cast<int>(bytes[i]); };
  EXPECT_EQ(std::memcmp(bytes.data(), "ECHF", 4), 0);
  EXPECT_EQ(at(4), 1);
  EXPECT_EQ(at(5), 2);
  EXPECT_EQ(at(8), 4);
  EXPECT_EQ(at(11), 1);
  EXPECT_EQ(at(24), 4);
  EXPECT_EQ(at(26), 3);
  EXPECT_EQ(at(28), 7);
  EXPECT_EQ(at(32), 0x88);
  EXPECT_EQ(at(39), 0x11);
}

TEST(Frame, EveryFlippedBitIsNoticed) {
  const Stream random({7, 0, 0, stream_layer("frame")});
  auto payload = random_bytes(random, 40);
  FrameHeader h = random_header(random);
  seal(h, payload);
  const auto good = encode_header(h);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_EQ(fault_of(bad), bit < 32 ? FrameFault::magic : FrameFault::header_checksum) << bit;
  }
  for (std::size_t bit = 0; bit < payload.size() * 8; ++bit) {
    payload[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_THROW(check_payload(h, payload), BadFrame) << bit;
    payload[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  EXPECT_THROW(check_payload(h, std::span(payload).first(39)), BadFrame);
}

TEST(Frame, LimitsAreCheckedAndNamed) {
  FrameHeader h{.from = 1, .to = 2};
  seal(h, {});
  const auto good = encode_header(h);
  EXPECT_EQ(fault_of(std::span(good).first(79)), FrameFault::too_short);
  EXPECT_EQ(fault_of(forged(good, 4, std::uint8_t{9})), FrameFault::version);
  EXPECT_EQ(fault_of(forged(good, 5, std::uint8_t{frame_kinds})), FrameFault::kind);
  EXPECT_EQ(fault_of(forged(good, 6, std::uint16_t{1})), FrameFault::kind);
  EXPECT_EQ(fault_of(good, {.ranks = 2}), FrameFault::rank);
  for (const std::uint64_t bytes : {std::uint64_t{1} << 31, ~std::uint64_t{0}, (std::uint64_t{1} << 20) + 1}) {
    const auto huge = forged(forged(good, 48, bytes), 64, bytes);
    EXPECT_EQ(fault_of(huge), FrameFault::too_long) << bytes;
  }
  EXPECT_EQ(fault_of(forged(good, 48, ~std::uint64_t{0})), FrameFault::too_long);
  EXPECT_EQ(fault_of(forged(good, 64, std::uint64_t{1})), FrameFault::length);   // more than the message has
  EXPECT_EQ(fault_of(forged(good, 56, ~std::uint64_t{0})), FrameFault::length);  // no overflow of offset + bytes
  try {
    decode_header(forged(good, 4, std::uint8_t{9}));
  } catch (const BadFrame& bad) {
    EXPECT_STREQ(bad.what(), "a frame of version 9, this is version 1");
  }
}

TEST(Frame, APayloadMayBeCheckedInPieces) {
  const auto payload = random_bytes(Stream({1, 2, 3, 4}), 1000);
  FrameHeader h;
  seal(h, payload);
  std::uint32_t crc = 0;
  for (std::size_t at = 0; at < payload.size(); at += 77)
    crc = crc32c(std::span(payload).subspan(at, std::min<std::size_t>(77, payload.size() - at)), crc);
  check_payload(h, payload.size(), crc);
}

}  // namespace
}  // namespace echelon
