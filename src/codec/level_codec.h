#pragma once
// The base of codecs that round each number of a part stochastically to one of a few levels, so that the expectation is
// exact. A level L stands for (L - centre) * unit; only the unit differs from part to part. Encoding of a part: the
// unit (float32), then the packed levels.

#include "codec/kernels/levels.h"
#include "codec/piecewise.h"

namespace echelon::codecs {

struct LevelFormat {
  std::uint8_t top = 1;  // levels are 0 .. top
  float centre = 0;      // the level of the number 0
  int bits = 1;          // of a level; 0: five levels of 0, 1, 2 share a byte
};

class LevelCodec : public PiecewiseCodec {
 protected:
  LevelCodec(const std::vector<std::size_t>& parts, const LevelFormat& format);
  virtual float unit_of(std::span<const float> x) const = 0;

 private:
  void encode_part(std::span<const float> x, const Noise& noise, std::size_t first, std::byte* out) const override;
  void encode_part_rest(std::span<float> x, const Noise& noise, std::size_t first, std::byte* out) const override;
  Grid grid_of(std::span<const float> x, std::byte* out) const;  // and writes the header
  void add_part(const std::byte* bytes, float scale, std::span<float> out) const override;
  void decode_part(const std::byte* bytes, std::span<float> out) const override;
  LevelFormat format_;
};

// The levels alone, for codecs with another header: those of n numbers take packed_levels(n) bytes.
std::size_t packed_levels(std::size_t n, const LevelFormat& format);
// Calls write(first, count, levels) for consecutive blocks of numbers, which fills in their levels, and packs them.
template <class Write>
void write_levels(std::size_t n, const LevelFormat& format, std::byte* out, const Write& write);
// The same, and calls read(first, count, levels) for every block after it was written, while it is in the cache.
template <class Write, class Read>
void write_and_read_levels(std::size_t n, const LevelFormat& format, std::byte* out, const Write& write,
                           const Read& read);
// Calls read(first, count, levels) for consecutive blocks; Failure if there is a level above the top.
template <class Read>
void read_levels(const std::byte* bytes, std::size_t n, const LevelFormat& format, const Read& read);

}  // namespace echelon::codecs

#include "codec/level_codec-inl.h"
