#pragma once
// Reading and writing values in an encoding (little-endian, packed). BytesIn checks bounds: Failure at the end.

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include "base/error.h"

namespace echelon::codecs {

static_assert(std::endian::native == std::endian::little, "codecs write numbers as they lie in memory");

template <typename T>
requires std::is_trivially_copyable_v<T> T get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
requires std::is_trivially_copyable_v<T>
void put(std::byte* to, T value) { std::memcpy(to, &value, sizeof(T)); }

class BytesIn {
 public:
  explicit BytesIn(std::span<const std::byte> bytes) : left_(bytes) {}
  std::span<const std::byte> take(std::size_t count) {
    if (count > left_.size())
      fail("encoded numbers end too early: {} bytes are there, {} are due", left_.size(), count);
    const auto taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  template <typename T>
  T take() {
    return get<T>(take(sizeof(T)).data());
  }
  std::span<const std::byte> rest() { return take(left_.size()); }
  void done() const {
    if (!left_.empty()) fail("encoded numbers go on for {} bytes after their end", left_.size());
  }

 private:
  std::span<const std::byte> left_;
};

}  // namespace echelon::codecs
