#pragma once
// A text on a connection between two that trust each other: four bytes with its length, then the text.

#include <cstdint>
#include <string>

#include "world/transport/tcp/wire.h"

namespace echelon::tcp {

asio::awaitable<void> write_note(Wire& wire, std::string text);
asio::awaitable<std::string> read_note(Wire& wire, std::uint32_t limit);  // Failure if it is longer than `limit`

}  // namespace echelon::tcp
