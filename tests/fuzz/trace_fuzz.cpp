// Any file is either refused with BadInput or is a trace that can be looked at, in pieces and in all.

#include <cstdint>

#include "base/error.h"
#include "tests/support/memory_file.h"
#include "web/trace_store.h"

int fuzz_trace(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  test::MemoryFile file(std::as_bytes(std::span(data, size)));
  try {
    const web::ReadTrace trace = web::parse_trace(file, "fuzz");
    web::trace_window(trace, 0, trace.end, 100);
    web::trace_window(trace, trace.end / 3, trace.end / 2, 1000);
    web::trace_totals(trace);
  } catch (const BadInput&) {
  }
  return 0;
}
