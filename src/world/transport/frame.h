#pragma once
// The binary form of what travels between ranks of different machines: a header of fixed size, little-endian, then the
// payload.
//
//   at  bytes                         at  bytes
//    0  4  magic "ECHF"               32  8  sequence number of the sender
//    4  1  version                    40  8  acknowledged: all numbers below this one have arrived
//    5  1  kind                       48  8  bytes of the whole message
//    6  2  zero                       56  8  where in the message the payload begins
//    8  4  from (rank)                64  8  bytes of the payload
//   12  4  to (rank)                  72  4  CRC-32C of the payload
//   16  4  epoch                      76  4  CRC-32C of the 76 bytes before
//   20  4  channel                    80     the payload
//   24  8  label (kind, type, step, number)
//
// The header has a checksum of its own, which covers that of the payload: so a receiver can trust lengths and numbers
// before the payload has arrived, and receive that where it belongs. A message may travel in several frames.
//
// Nothing here allocates. Thread-safe: no state.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "base/error.h"
#include "world/failure.h"
#include "world/label.h"

namespace echelon {

enum class FrameKind : std::uint8_t {
  hello,    // not used: the handshake has a form of its own
  data,     // a message, or a piece of one
  ack,      // how much of the channel's short messages was taken
  alive,    // the sender lives
  status,   // payload: the sender's RankStatus
  abort,    // payload: why the sender aborts the job; sequence as for `lost`
  lost,     // payload: why a rank is lost; sequence: which, and of what kind the failure is (lost_sequence)
  bye,      // nothing more will be sent
  control,  // the payload says what (world/transport/tcp/frame_sender.h)
};
constexpr int frame_kinds = 9;

constexpr std::uint64_t lost_sequence(int rank, FailureKind kind) {
  return static_cast<std::uint64_t>(kind) << 32 | static_cast<std::uint32_t>(rank);
}
constexpr int lost_rank_of(std::uint64_t sequence) { return static_cast<int>(sequence & 0xffffffffu); }
constexpr FailureKind lost_kind_of(std::uint64_t sequence) {
  return sequence >> 32 == 1 ? FailureKind::bad_input : FailureKind::failure;
}

struct FrameHeader {
  FrameKind kind = FrameKind::data;
  std::uint32_t from = 0, to = 0;
  std::uint32_t epoch = 0;  // of the job; frames of another one are refused
  std::uint32_t channel = 0;
  Label label = {};
  std::uint64_t sequence = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t message_bytes = 0;
  std::uint64_t offset = 0;
  std::uint64_t payload_bytes = 0;
  std::uint32_t payload_crc = 0;

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

constexpr std::size_t frame_header_bytes = 80;
constexpr std::uint8_t frame_version = 1;
using FrameHeaderBytes = std::array<std::byte, frame_header_bytes>;

enum class FrameFault { too_short, magic, header_checksum, version, kind, rank, too_long, length, payload_checksum };

// What is wrong with a frame. A Failure: a damaged wire is no mistake of the user.
class BadFrame : public Failure {
 public:
  BadFrame(FrameFault fault, const std::string& text) : Failure(text), fault_(fault) {}
  FrameFault fault() const { return fault_; }

 private:
  FrameFault fault_;
};

// What a receiver accepts; checked before anything is allocated.
struct FrameLimits {
  std::uint64_t payload_bytes = std::uint64_t{1} << 20;
  std::uint64_t message_bytes = std::uint64_t{1} << 40;
  std::uint32_t ranks = std::numeric_limits<std::uint32_t>::max();  // `from` and `to` are below
};

// Fills in payload_bytes and payload_crc, and message_bytes if it is 0. For an empty payload pass {}.
void seal(FrameHeader& header, std::span<const std::byte> payload);
// `header` must be sealed.
FrameHeaderBytes encode_header(const FrameHeader& header);
// The first 80 of `bytes`; throws BadFrame naming what is wrong and both values.
FrameHeader decode_header(std::span<const std::byte> bytes, const FrameLimits& limits = {});
// Throws BadFrame if these are not the bytes that the header announced.
void check_payload(const FrameHeader& header, std::span<const std::byte> payload);
// The same for a payload that came in pieces, of which `crc` is crc32c(piece, crc before).
void check_payload(const FrameHeader& header, std::uint64_t bytes, std::uint32_t crc);

}  // namespace echelon
