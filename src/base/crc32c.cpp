#include "base/crc32c.h"

#include <nmmintrin.h>  // part of the baseline, x86-64-v2

#include <array>
#include <cstring>

namespace echelon {

namespace {

// Three neighbouring pieces of this many bytes are worked on at once, because the instruction takes three cycles but a
// new one can start in each. Their remainders are joined by moving a remainder past the zeros that stand for the piece
// after it: a linear map over bits, kept as a table for each of its four bytes.
constexpr std::size_t piece_bytes = 1024;
using Matrix = std::array<std::uint32_t, 32>;  // the image of each bit

constexpr std::uint32_t image(const Matrix& m, std::uint32_t vector) {
  std::uint32_t sum = 0;
  for (std::size_t bit = 0; vector; ++bit, vector >>= 1) {
    if (vector & 1) sum ^= m[bit];
  }
  return sum;
}

constexpr std::array<std::array<std::uint32_t, 256>, 4> make_past_piece() {
  Matrix m{};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    std::uint32_t crc = std::uint32_t{1} << bit;
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0);  // past one zero byte
    m[bit] = crc;
  }
  for (std::size_t bytes = 1; bytes < piece_bytes; bytes *= 2) {  // twice as many zeros: the map applied twice
    Matrix twice{};
    for (std::size_t bit = 0; bit < 32; ++bit) twice[bit] = image(m, m[bit]);
    m = twice;
  }
  std::array<std::array<std::uint32_t, 256>, 4> tables{};
  for (std::size_t byte = 0; byte < 4; ++byte) {
    for (std::uint32_t value = 0; value < 256; ++value) tables[byte][value] = image(m, value << (8 * byte));
  }
  return tables;
}

constexpr auto past_piece = make_past_piece();

std::uint64_t move_past_piece(std::uint64_t crc) {
  return past_piece[0][crc & 0xff] ^ past_piece[1][(crc >> 8) & 0xff] ^ past_piece[2][(crc >> 16) & 0xff] ^
         past_piece[3][(crc >> 24) & 0xff];
}

std::uint64_t word(const std::byte* at) {
  std::uint64_t w;
  std::memcpy(&w, at, sizeof w);
  return w;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint64_t crc = ~before;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 3 * piece_bytes; left -= 3 * piece_bytes, at += 3 * piece_bytes) {
    std::uint64_t second = 0, third = 0;
    for (std::size_t i = 0; i < piece_bytes; i += 8) {
      crc = _mm_crc32_u64(crc, word(at + i));
      second = _mm_crc32_u64(second, word(at + piece_bytes + i));
      third = _mm_crc32_u64(third, word(at + 2 * piece_bytes + i));
    }
    crc = move_past_piece(move_past_piece(crc) ^ second) ^ third;
  }
  for (; left >= 8; left -= 8, at += 8) crc = _mm_crc32_u64(crc, word(at));
  auto crc32 = static_cast<std::uint32_t>(crc);
  for (; left > 0; --left, ++at) crc32 = _mm_crc32_u8(crc32, static_cast<unsigned char>(*at));
  return ~crc32;
}

}  // namespace echelon
