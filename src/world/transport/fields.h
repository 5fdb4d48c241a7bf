#pragma once
// Numbers and arrays one after the other in bytes of a fixed layout, without padding, as they lie in memory (little
// endian). The caller has checked that there are enough bytes.

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

namespace echelon {

static_assert(std::endian::native == std::endian::little, "numbers go out as they lie in memory");

class FieldWriter {
 public:
  explicit FieldWriter(std::span<std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  FieldWriter& put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(bytes_.data() + at_, &value, sizeof value);
    at_ += sizeof value;
    return *this;
  }

 private:
  std::span<std::byte> bytes_;
  std::size_t at_ = 0;
};

class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace echelon
