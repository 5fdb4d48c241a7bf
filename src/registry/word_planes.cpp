#include "registry/word_planes.h"

#include <zstd.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace echelon {

namespace {

constexpr int level = 6;

std::uint32_t word_at(std::span<const std::byte> bytes, std::size_t i) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + 4 * i, 4);
  return word;
}

std::uint32_t zigzag(std::uint32_t difference) {
  return (difference << 1) ^ (static_cast<std::uint32_t>(static_cast<std::int32_t>(difference) >> 31));
}
// The words in the order in which they are stored: by the exponent (as of a float) of the earlier version.
std::vector<std::uint32_t> stored_order(std::span<const std::byte> base, std::size_t words) {
  std::vector<std::uint32_t> order(words);
  std::array<std::size_t, 257> next{};
  const auto exponent = [&](std::size_t i) { return base.empty() ? 0 : word_at(base, i) >> 23 & 255; };
  for (std::size_t i = 0; i < words; ++i) ++next[exponent(i) + 1];
  for (std::size_t e = 1; e < next.size(); ++e) next[e] += next[e - 1];
  for (std::size_t i = 0; i < words; ++i) order[next[exponent(i)]++] = static_cast<std::uint32_t>(i);
  return order;
}

std::uint32_t unzigzag(std::uint32_t folded) { return (folded >> 1) ^ (0u - (folded & 1u)); }

}  // namespace

std::vector<std::byte> pack_words(std::span<const std::byte> bytes, std::span<const std::byte> base) {
  invariant(base.empty() || base.size() == bytes.size(), "an earlier version of another size");
  const std::size_t words = bytes.size() / 4;
  std::vector<std::byte> planes(bytes.begin(), bytes.end());  // the last bytes that are no word stay as they are
  const std::vector<std::uint32_t> order = stored_order(base, words);
  for (std::size_t at = 0; at < words; ++at) {
    const std::size_t i = order[at];
    const std::uint32_t folded = base.empty() ? word_at(bytes, i) : zigzag(word_at(bytes, i) - word_at(base, i));
    for (std::size_t plane = 0; plane < 4; ++plane)
      planes[plane * words + at] = static_cast<std::byte>(folded >> (24 - 8 * plane));
  }
  std::vector<std::byte> packed(ZSTD_compressBound(planes.size()));
  const std::size_t size = ZSTD_compress(packed.data(), packed.size(), planes.data(), planes.size(), level);
  invariant(!ZSTD_isError(size), "zstd does not compress");
  packed.resize(size);
  return packed;
}

std::vector<std::byte> unpack_words(std::span<const std::byte> packed, std::span<const std::byte> base,
                                    std::size_t size) {
  invariant(base.empty() || base.size() == size, "an earlier version of another size");
  // zstd packs at most some 65,000 bytes into one: what claims more is not believed before anything is allocated.
  if (ZSTD_getFrameContentSize(packed.data(), packed.size()) != size || size / 131'072 > packed.size())
    bad_input("damaged: it does not hold {} bytes", size);
  std::vector<std::byte> planes(size);
  if (ZSTD_decompress(planes.data(), planes.size(), packed.data(), packed.size()) != size)
    bad_input("damaged: what was packed cannot be unpacked");
  const std::size_t words = size / 4;
  std::vector<std::byte> bytes = planes;
  const std::vector<std::uint32_t> order = stored_order(base, words);
  for (std::size_t at = 0; at < words; ++at) {
    const std::size_t i = order[at];
    std::uint32_t folded = 0;
    for (std::size_t plane = 0; plane < 4; ++plane)
      folded = folded << 8 | static_cast<std::uint32_t>(planes[plane * words + at]);
    const std::uint32_t word = base.empty() ? folded : word_at(base, i) + unzigzag(folded);
    std::memcpy(bytes.data() + 4 * i, &word, 4);
  }
  return bytes;
}

}  // namespace echelon
