// Any bytes are either refused with BadFrame or are, byte by byte, what writing the header gives, within the limits.

#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "world/transport/frame.h"

int fuzz_frame(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const auto bytes = std::as_bytes(std::span(data, size));
  const FrameLimits limits{.payload_bytes = 1000, .message_bytes = 5000, .ranks = 16};
  try {
    const FrameHeader h = decode_header(bytes, limits);
    const auto again = encode_header(h);
    invariant(std::memcmp(again.data(), data, again.size()) == 0, "a header was accepted that nobody wrote");
    invariant(h.payload_bytes <= 1000 && h.offset + h.payload_bytes <= h.message_bytes && h.message_bytes <= 5000 &&
                  h.from < 16 && h.to < 16,
              "a header beyond the limits was accepted");
    check_payload(h, bytes.subspan(frame_header_bytes));
  } catch (const BadFrame&) {
  }
  return 0;
}
