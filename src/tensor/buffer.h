#pragma once
// Memory for numbers: 64-byte aligned (one cache line, one wide vector), zeroed, on huge pages when large enough for
// them to matter. Owned by exactly one Buffer; movable, not copyable.

#include <cstddef>
#include <memory>
#include <span>

namespace echelon {

class Buffer {
 public:
  static constexpr std::size_t alignment = 64;

  Buffer() = default;
  explicit Buffer(std::size_t bytes);

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }

  template <typename T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_.get()), bytes_ / sizeof(T)};
  }
  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_.get()), bytes_ / sizeof(T)};
  }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t bytes_ = 0;
};

// `bytes` rounded up to whole cache lines: the distance at which planned pieces of a buffer follow each other.
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + Buffer::alignment - 1) / Buffer::alignment * Buffer::alignment;
}

}  // namespace echelon
