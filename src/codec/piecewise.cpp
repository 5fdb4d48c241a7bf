#include "codec/piecewise.h"

#include <algorithm>

#include "base/error.h"
#include "codec/codecs.h"
#include "kernels/vector.h"

namespace echelon::codecs {

std::size_t numbers_of(const std::vector<CodecPiece>& pieces) {
  std::size_t numbers = 0;
  for (const CodecPiece& piece : pieces) numbers += piece.size;
  return numbers;
}

std::vector<std::size_t> parts_of(const std::vector<CodecPiece>& pieces, std::size_t bucket) {
  std::vector<std::size_t> parts;
  for (const CodecPiece& piece : pieces)
    for (std::size_t left = piece.size; left > 0; left -= parts.back())
      parts.push_back(bucket == 0 ? left : std::min(left, bucket));
  return parts;
}

std::vector<std::size_t> rows_of(const std::vector<CodecPiece>& pieces) {
  std::vector<std::size_t> parts;
  for (const CodecPiece& piece : pieces) {
    const std::size_t row = piece.row > 0 ? piece.row : piece.size / piece.rows;
    std::size_t left = piece.size;
    const auto take = [&](std::size_t numbers) {
      if (left == 0 || numbers == 0) return;
      parts.push_back(std::min(left, numbers));
      left -= parts.back();
    };
    take(piece.head);
    while (left > 0) take(row);
  }
  return parts;
}

std::vector<std::size_t> one_part(const std::vector<CodecPiece>& pieces) { return {numbers_of(pieces)}; }

PiecewiseCodec::PiecewiseCodec(const std::vector<std::size_t>& parts,
                               const std::function<std::size_t(std::size_t n)>& bytes_of) {
  for (const std::size_t size : parts) {
    if (size == 0) continue;
    parts_.push_back({numbers_, size, bytes_});
    numbers_ += size;
    bytes_ += bytes_of(size);
  }
}

std::size_t PiecewiseCodec::encode(std::span<const float> values, const CodecStep& step, std::span<std::byte> out) {
  invariant(values.size() == numbers_ && out.size() >= bytes_, "a codec encodes the run that it was made for");
  const Noise noise(step.random);
  for (const Part& p : parts_) encode_part(values.subspan(p.begin, p.size), noise, p.begin, out.data() + p.at);
  return bytes_;
}

std::size_t PiecewiseCodec::encode_rest(std::span<float> values, const CodecStep& step, std::span<std::byte> out) {
  invariant(values.size() == numbers_ && out.size() >= bytes_, "a codec encodes the run that it was made for");
  const Noise noise(step.random);
  for (const Part& p : parts_) encode_part_rest(values.subspan(p.begin, p.size), noise, p.begin, out.data() + p.at);
  return bytes_;
}

std::size_t PiecewiseCodec::encode_sum(std::span<float> values, std::span<const float> more, const CodecStep& step,
                                       std::span<std::byte> out) {
  invariant(values.size() == numbers_ && more.size() == numbers_ && out.size() >= bytes_,
            "a codec encodes the run that it was made for");
  const Noise noise(step.random);
  for (const Part& p : parts_)
    encode_part_sum(values.subspan(p.begin, p.size), more.data() + p.begin, noise, p.begin, out.data() + p.at);
  return bytes_;
}

void PiecewiseCodec::encode_part_sum(std::span<float> x, const float* more, const Noise& noise, std::size_t first,
                                     std::byte* out) const {
  kernels::add_into(x.data(), more, x.size());
  encode_part_rest(x, noise, first, out);
}

void PiecewiseCodec::check(std::span<const std::byte> bytes, std::span<float> out) const {
  invariant(out.size() == numbers_, "a codec decodes the run that it was made for");
  if (bytes.size() != bytes_) fail("{} numbers came encoded in {} bytes, not in {}", numbers_, bytes.size(), bytes_);
}

void PiecewiseCodec::add(std::span<const std::byte> bytes, float scale, std::span<float> out) const {
  check(bytes, out);
  for (const Part& p : parts_) add_part(bytes.data() + p.at, scale, out.subspan(p.begin, p.size));
}

void PiecewiseCodec::decode(std::span<const std::byte> bytes, std::span<float> out) const {
  check(bytes, out);
  for (const Part& p : parts_) decode_part(bytes.data() + p.at, out.subspan(p.begin, p.size));
}

}  // namespace echelon::codecs
