#pragma once
// The format of sparse numbers. For every block of 2^15 numbers: the count of entries (16 bits), then the entries in
// rising order: the index in the block (15 bits), a flag, and the value, whose size the codec knows. An entry with a
// float32 takes 6 bytes, so a share s of the numbers takes 1.5 s times their float32 bytes (plus 2 bytes per block).

#include <algorithm>
#include <cstdint>

#include "codec/wire/wire.h"

namespace echelon::codecs {

inline constexpr std::size_t sparse_block = std::size_t{1} << 15;

constexpr std::size_t sparse_bytes(std::size_t numbers, std::size_t entries, std::size_t value_bytes) {
  return 2 * ((numbers + sparse_block - 1) / sparse_block) + entries * (2 + value_bytes);
}

class SparseWriter {
 public:
  SparseWriter(std::byte* out, std::size_t numbers) : out_(out), numbers_(numbers), at_(out), count_at_(out) {
    if (numbers > 0) at_ += 2;
  }
  // Indices rise from call to call.
  template <std::size_t value_bytes>
  void entry(std::size_t index, bool flag, const void* value) {
    while (index - begin_ >= sparse_block) next();
    put(at_, static_cast<std::uint16_t>((index - begin_) | (flag ? 0x8000u : 0u)));
    if constexpr (value_bytes > 0) std::memcpy(at_ + 2, value, value_bytes);
    at_ += 2 + value_bytes;
    ++count_;
  }
  // Entries without values that are already in the format: for some neighbours from `first` on, all in one block.
  void entries(std::size_t first, std::span<const std::uint16_t> words) {
    while (first - begin_ >= sparse_block) next();
    std::memcpy(at_, words.data(), words.size_bytes());
    at_ += words.size_bytes();
    count_ += words.size();
  }
  std::size_t finish() {
    if (numbers_ == 0) return 0;
    while (numbers_ - begin_ > sparse_block) next();
    put(count_at_, static_cast<std::uint16_t>(count_));
    return static_cast<std::size_t>(at_ - out_);
  }

 private:
  void next() {
    put(count_at_, static_cast<std::uint16_t>(count_));
    count_at_ = at_;
    at_ += 2;
    count_ = 0;
    begin_ += sparse_block;
  }
  std::byte* out_;
  std::size_t numbers_, begin_ = 0, count_ = 0;
  std::byte *at_, *count_at_;
};

// f(index, flag, pointer to the value) for every entry. Failure if the entries are not valid for so many numbers.
template <std::size_t value_bytes, class F>
void read_sparse(BytesIn& in, std::size_t numbers, const F& f) {
  for (std::size_t begin = 0; begin < numbers; begin += sparse_block) {
    const std::size_t here = std::min(numbers - begin, sparse_block), count = in.take<std::uint16_t>();
    const std::byte* entries = in.take(count * (2 + value_bytes)).data();
    const auto word = [&](std::size_t k) { return get<std::uint16_t>(entries + k * (2 + value_bytes)); };
    // All indices are checked before any is used: neither loop has a branch that is hard to predict.
    std::size_t least = 0;
    bool rising = true;
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t place = word(k) & 0x7FFF;
      rising &= place >= least;
      least = place + 1;
    }
    if (!rising || least > here) fail("the indices of encoded numbers do not rise, or are not below {}", here);
    for (std::size_t k = 0; k < count; ++k)
      f(begin + (word(k) & 0x7FFF), (word(k) & 0x8000) != 0, entries + k * (2 + value_bytes) + 2);
  }
}

}  // namespace echelon::codecs
