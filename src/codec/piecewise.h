#pragma once
// The base of codecs whose encodings have a fixed size: the run is cut into parts (a parameter, a row of a parameter,
// or a bucket of a fixed count of numbers), which are encoded one after the other. A part has scales of its own.

#include "codec/codec.h"
#include "codec/kernels/noise.h"

namespace echelon::codecs {

// The sizes of the parts: pieces, cut into buckets of at most `bucket` numbers unless that is 0; rows of pieces; or one
// part for all.
std::vector<std::size_t> parts_of(const std::vector<CodecPiece>& pieces, std::size_t bucket);
std::vector<std::size_t> rows_of(const std::vector<CodecPiece>& pieces);
std::vector<std::size_t> one_part(const std::vector<CodecPiece>& pieces);

class PiecewiseCodec : public Codec {
 public:
  std::size_t most_bytes() const final { return bytes_; }
  bool same_size_always() const final { return true; }
  std::size_t encode(std::span<const float> values, const CodecStep& step, std::span<std::byte> out) final;
  std::size_t encode_rest(std::span<float> values, const CodecStep& step, std::span<std::byte> out) final;
  std::size_t encode_sum(std::span<float> values, std::span<const float> more, const CodecStep& step,
                         std::span<std::byte> out) final;
  void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const final;
  void decode(std::span<const std::byte> bytes, std::span<float> out) const final;

 protected:
  // `bytes_of(n)` is the encoded size of a part of n > 0 numbers.
  PiecewiseCodec(const std::vector<std::size_t>& parts, const std::function<std::size_t(std::size_t n)>& bytes_of);
  // x[i] has the noise of position `first` + i.
  virtual void encode_part(std::span<const float> x, const Noise& noise, std::size_t first, std::byte* out) const = 0;
  // The same, and subtracts what is decoded from x.
  virtual void encode_part_rest(std::span<float> x, const Noise& noise, std::size_t first, std::byte* out) const {
    encode_part(x, noise, first, out);
    add_part(out, -1, x);
  }
  // The same, after more[i] has been added to x[i].
  virtual void encode_part_sum(std::span<float> x, const float* more, const Noise& noise, std::size_t first,
                               std::byte* out) const;
  virtual void add_part(const std::byte* bytes, float scale, std::span<float> out) const = 0;
  virtual void decode_part(const std::byte* bytes, std::span<float> out) const = 0;

 private:
  struct Part {
    std::size_t begin, size, at;  // numbers from `begin`, bytes from `at`
  };
  void check(std::span<const std::byte> bytes, std::span<float> out) const;
  std::vector<Part> parts_;
  std::size_t numbers_ = 0, bytes_ = 0;
};

}  // namespace echelon::codecs
