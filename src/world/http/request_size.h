#pragma once
// Where an HTTP request ends, from its bytes alone. Whoever waits for a request can so wait for the whole of it before
// anybody works on it, and hand on exactly its own bytes. Stricter than the standard: what two readers could understand
// in two ways is refused. A pure function.

#include <cstddef>
#include <string_view>

namespace echelon::http {

struct RequestLimits {
  std::size_t head_bytes = 16 << 10;  // the request line and all headers
  std::size_t body_bytes = 64 << 10;
};

struct RequestSize {
  std::size_t bytes = 0;        // of head and body, once the head is there; 0 before
  int refused = 0;              // the status to answer with; 0: nothing is wrong so far
  const char* why = "";         // of a refusal, for people
  bool waits_for_body = false;  // the client sends its body only after it has heard "100 Continue"
};

// Of the request at the beginning of `text`; what follows it is not looked at.
RequestSize request_size(std::string_view text, const RequestLimits& limits);

}  // namespace echelon::http
