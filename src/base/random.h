#pragma once
// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011). A number is a pure function of where it is used:
// (seed, step, shard, layer, index). Nothing is consumed, so the order in which cores or workers draw cannot matter,
// and resuming needs no saved state beyond the step. Thread-safe: there is no state.

#include <array>
#include <cstdint>

namespace echelon {

// Which sequence of numbers. `layer` tells apart the users within one step of one shard (a dropout layer, the noise of
// an augmentation); ids from `stream_layer(name)` do not collide in practice.
struct StreamId {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t shard = 0;
  std::uint32_t layer = 0;
};

// A stable 32-bit id for a name (FNV-1a).
constexpr std::uint32_t stream_layer(const char* name) {
  std::uint32_t h = 2166136261u;
  for (; *name; ++name) h = (h ^ static_cast<unsigned char>(*name)) * 16777619u;
  return h;
}

namespace detail {
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}
}  // namespace detail

class Stream {
 public:
  explicit constexpr Stream(StreamId id) : id_(id) {}

  // Four independent 32-bit numbers at position `block`; `bits(i)` is word i % 4 of block i / 4.
  constexpr std::array<std::uint32_t, 4> block(std::uint32_t block) const {
    return detail::philox({block, id_.step, id_.shard, id_.layer}, static_cast<std::uint32_t>(id_.seed),
                          static_cast<std::uint32_t>(id_.seed >> 32));
  }
  constexpr std::uint32_t bits(std::uint64_t index) const {
    return block(static_cast<std::uint32_t>(index >> 2))[index & 3];
  }
  // Uniform in [0, 1), 24 bits.
  constexpr float uniform(std::uint64_t index) const { return static_cast<float>(bits(index) >> 8) * 0x1p-24f; }
  // Uniform integer in [0, n), n > 0, without modulo bias worth speaking of (64-bit product).
  constexpr std::uint32_t below(std::uint32_t n, std::uint64_t index) const {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(bits(index)) * n) >> 32);
  }
  // Standard normal (Box-Muller on the pair of words 2*(index/2), +1).
  float normal(std::uint64_t index) const;

  constexpr StreamId id() const { return id_; }

 private:
  StreamId id_;
};

}  // namespace echelon
