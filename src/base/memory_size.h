#pragma once
// Sizes of memory as people write them. A pure function, thread-safe.

#include <cstddef>
#include <optional>
#include <string>

namespace echelon {

// "1.2GiB", "800MiB", "4096": bytes; nothing if it is no size.
std::optional<std::size_t> memory_size(const std::string& text);

}  // namespace echelon
