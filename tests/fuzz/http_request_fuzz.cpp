// Where an HTTP request ends: within its limits, the same whatever follows it, and not before all of its head is there.

#include <cstdint>
#include <string>

#include "base/error.h"
#include "world/http/request_size.h"

int fuzz_http_request(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const http::RequestLimits limits{.head_bytes = 256, .body_bytes = 100};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const http::RequestSize found = http::request_size(text, limits);
  invariant(found.bytes == 0 || found.refused == 0, "a request is both whole and refused");
  invariant(found.bytes <= limits.head_bytes + limits.body_bytes, "a request is longer than allowed");
  if (found.bytes == 0) return 0;
  const std::size_t body = text.find("\r\n\r\n");
  invariant(body != std::string_view::npos, "a head without an end");
  invariant(http::request_size(text.substr(0, body + 4), limits).bytes == found.bytes, "what follows changes its size");
  invariant(http::request_size(text.substr(0, body + 3), limits).bytes == 0, "a head ends before its end");
  return 0;
}
