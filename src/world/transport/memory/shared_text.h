#pragma once
// A short text that one rank changes often and others read now and then, without either waiting for the other: a
// sequence lock over words. One writer at a time. Lies in memory that all see; all zero is the empty text.

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace echelon {

class SharedText {
 public:
  static constexpr std::size_t capacity = 63;  // longer texts are cut

  void write(std::string_view text);
  std::string read() const;

 private:
  std::atomic<std::uint32_t> version_{0};  // odd while it is being written
  std::array<std::atomic<std::uint64_t>, 8> words_{};
};

}  // namespace echelon
