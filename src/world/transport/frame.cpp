#include "world/transport/frame.h"

#include "base/crc32c.h"
#include "world/transport/fields.h"

namespace echelon {

namespace {

constexpr std::uint32_t magic = 0x46484345;  // "ECHF"
constexpr std::size_t header_crc_at = frame_header_bytes - 4;

template <typename... Args>
void refuse_if(bool wrong, FrameFault fault, fmt::format_string<Args...> text, Args&&... args) {
  if (wrong) throw BadFrame(fault, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace

void seal(FrameHeader& header, std::span<const std::byte> payload) {
  header.payload_bytes = payload.size();
  header.payload_crc = crc32c(payload);
  if (header.message_bytes == 0) header.message_bytes = payload.size();
}

FrameHeaderBytes encode_header(const FrameHeader& h) {
  FrameHeaderBytes bytes;
  FieldWriter out(bytes);
  out.put(magic).put(frame_version).put(h.kind).put(std::uint16_t{0});
  out.put(h.from).put(h.to).put(h.epoch).put(h.channel);
  out.put(h.label.kind).put(h.label.type).put(h.label.step).put(h.label.number);
  out.put(h.sequence).put(h.acknowledged).put(h.message_bytes).put(h.offset).put(h.payload_bytes).put(h.payload_crc);
  out.put(crc32c(std::span(bytes).first(header_crc_at)));
  return bytes;
}

FrameHeader decode_header(std::span<const std::byte> bytes, const FrameLimits& limits) {
  refuse_if(bytes.size() < frame_header_bytes, FrameFault::too_short,
            "a frame of {} bytes is shorter than a header ({})", bytes.size(), frame_header_bytes);
  FieldReader in(bytes);
  const auto found = in.get<std::uint32_t>();
  refuse_if(found != magic, FrameFault::magic, "a frame begins with {:#010x}, not with {:#010x}", found, magic);
  const auto computed = crc32c(bytes.first(header_crc_at));
  const auto stored = FieldReader(bytes.subspan(header_crc_at)).get<std::uint32_t>();
  refuse_if(computed != stored, FrameFault::header_checksum,
            "a frame's header has the checksum {:#010x} and says {:#010x}", computed, stored);
  const auto version = in.get<std::uint8_t>();
  refuse_if(version != frame_version, FrameFault::version, "a frame of version {}, this is version {}", version,
            frame_version);
  const auto kind_number = in.get<std::uint8_t>();
  const auto zero = in.get<std::uint16_t>();
  refuse_if(kind_number >= frame_kinds || zero != 0, FrameFault::kind, "a frame of the unknown kind {}.{}", kind_number,
            zero);
  FrameHeader h;
  h.kind = static_cast<FrameKind>(kind_number);
  h.from = in.get<std::uint32_t>();
  h.to = in.get<std::uint32_t>();
  refuse_if(h.from >= limits.ranks || h.to >= limits.ranks, FrameFault::rank,
            "a frame from rank {} to rank {}, of {} ranks", h.from, h.to, limits.ranks);
  h.epoch = in.get<std::uint32_t>();
  h.channel = in.get<std::uint32_t>();
  h.label.kind = in.get<OperationKind>();
  h.label.type = in.get<std::uint8_t>();
  h.label.step = in.get<std::uint16_t>();
  h.label.number = in.get<std::uint32_t>();
  h.sequence = in.get<std::uint64_t>();
  h.acknowledged = in.get<std::uint64_t>();
  h.message_bytes = in.get<std::uint64_t>();
  h.offset = in.get<std::uint64_t>();
  h.payload_bytes = in.get<std::uint64_t>();
  h.payload_crc = in.get<std::uint32_t>();
  refuse_if(h.payload_bytes > limits.payload_bytes, FrameFault::too_long, "a frame of {} bytes, at most {} are allowed",
            h.payload_bytes, limits.payload_bytes);
  refuse_if(h.message_bytes > limits.message_bytes, FrameFault::too_long,
            "a message of {} bytes, at most {} are allowed", h.message_bytes, limits.message_bytes);
  refuse_if(h.offset > h.message_bytes || h.payload_bytes > h.message_bytes - h.offset, FrameFault::length,
            "a frame with {} bytes from {} on, in a message of {}", h.payload_bytes, h.offset, h.message_bytes);
  return h;
}

void check_payload(const FrameHeader& header, std::uint64_t bytes, std::uint32_t crc) {
  refuse_if(bytes != header.payload_bytes, FrameFault::length, "a frame announces {} bytes and has {}",
            header.payload_bytes, bytes);
  refuse_if(crc != header.payload_crc, FrameFault::payload_checksum,
            "a frame's payload has the checksum {:#010x} and should have {:#010x}", crc, header.payload_crc);
}

void check_payload(const FrameHeader& header, std::span<const std::byte> payload) {
  check_payload(header, payload.size(), crc32c(payload));
}

}  // namespace echelon
