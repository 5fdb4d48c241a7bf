// Any text is either refused with BadInput or is, byte by byte, what writing the manifest gives.

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "track/manifest.h"

int fuzz_manifest(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    invariant(to_text(parse_manifest(text, "input")) == text, "a manifest was accepted that nobody wrote");
  } catch (const BadInput&) {
  }
  return 0;
}
