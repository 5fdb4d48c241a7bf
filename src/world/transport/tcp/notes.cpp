#include "world/transport/tcp/notes.h"

#include "base/error.h"

namespace echelon::tcp {

asio::awaitable<void> write_note(Wire& wire, std::string text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  std::string note(reinterpret_cast<const char*>(&size), sizeof size);
  note += text;
  co_await wire.write_all(std::as_bytes(std::span(note)));
}

asio::awaitable<std::string> read_note(Wire& wire, std::uint32_t limit) {
  std::uint32_t size = 0;
  co_await wire.read_all(std::as_writable_bytes(std::span(&size, 1)));
  if (size > limit) fail("a note of {} bytes, at most {} are allowed", size, limit);
  std::string text(size, '\0');
  co_await wire.read_all(std::as_writable_bytes(std::span(text)));
  co_return text;
}

}  // namespace echelon::tcp
