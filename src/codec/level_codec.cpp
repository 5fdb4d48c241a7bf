#include "codec/level_codec.h"

#include "codec/kernels/levels.h"
#include "codec/wire/bits.h"
#include "codec/wire/wire.h"

namespace echelon::codecs {

namespace {

constexpr std::size_t unit_bytes = sizeof(float);

}  // namespace

std::size_t packed_levels(std::size_t n, const LevelFormat& format) {
  const auto packed = [&](std::size_t some) {
    return format.bits == 0 ? packed_trits(level_count(some)) : packed_bits(level_count(some), format.bits);
  };
  return n / symbol_block * packed(symbol_block) + packed(n % symbol_block);
}

LevelCodec::LevelCodec(const std::vector<std::size_t>& parts, const LevelFormat& format)
    : PiecewiseCodec(parts, [&](std::size_t n) { return unit_bytes + packed_levels(n, format); }), format_(format) {}

Grid LevelCodec::grid_of(std::span<const float> x, std::byte* out) const {
  float unit = unit_of(x);
  if (unit < 1e-32f) unit = 0;  // its inverse would be infinite; such a part is as good as zero
  put(out, unit);
  return {.multiply = unit == 0 ? 0 : 1 / unit, .add = format_.centre, .top = format_.top};
}

void LevelCodec::encode_part(std::span<const float> x, const Noise& noise, std::size_t first, std::byte* out) const {
  const Grid grid = grid_of(x, out);
  write_levels(x.size(), format_, out + unit_bytes, [&](std::size_t i, std::size_t some, std::uint8_t* levels) {
    round_to_levels(x.subspan(i, some), grid, noise, first + i, levels);
  });
}

void LevelCodec::encode_part_rest(std::span<float> x, const Noise& noise, std::size_t first, std::byte* out) const {
  const Grid grid = grid_of(x, out);
  const float unit = get<float>(out);
  write_and_read_levels(
      x.size(), format_, out + unit_bytes,
      [&](std::size_t i, std::size_t some, std::uint8_t* levels) {
        round_to_levels(x.subspan(i, some), grid, noise, first + i, levels);
      },
      [&](std::size_t i, std::size_t some, const std::uint8_t* levels) {
        add_levels(levels, format_.centre * unit, -unit, x.subspan(i, some));
      });
}

void LevelCodec::add_part(const std::byte* bytes, float scale, std::span<float> out) const {
  const float unit = scale * get<float>(bytes);
  read_levels(bytes + unit_bytes, out.size(), format_,
              [&](std::size_t i, std::size_t some, const std::uint8_t* levels) {
                add_levels(levels, -format_.centre * unit, unit, out.subspan(i, some));
              });
}

void LevelCodec::decode_part(const std::byte* bytes, std::span<float> out) const {
  const float unit = get<float>(bytes);
  read_levels(bytes + unit_bytes, out.size(), format_,
              [&](std::size_t i, std::size_t some, const std::uint8_t* levels) {
                spread_levels(levels, -format_.centre * unit, unit, out.subspan(i, some));
              });
}

}  // namespace echelon::codecs
