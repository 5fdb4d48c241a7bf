#include "codec/wire/sparse_stream.h"

#include <algorithm>

#include "codec/kernels/select.h"
#include "codec/wire/sparse.h"

namespace echelon::codecs {

namespace {

constexpr std::size_t entry_bytes = 2 + sizeof(float);

// The entries of one block, checked as they are read.
class StreamBlock {
 public:
  StreamBlock(BytesIn& in, std::size_t here) : here_(here), left_(in.take<std::uint16_t>()) {
    at_ = in.take(left_ * entry_bytes).data();
    look();
  }
  bool empty() const { return left_ == 0; }
  std::size_t place() const { return empty() ? here_ : place_; }
  float value() const { return get<float>(at_ + 2); }
  void next() {
    at_ += entry_bytes;
    --left_;
    least_ = place_ + 1;
    look();
  }

 private:
  void look() {
    if (left_ == 0) return;
    place_ = get<std::uint16_t>(at_);
    if (place_ < least_ || place_ >= here_) fail("a sparse sum is out of order: place {} of {}", place_, here_);
  }
  std::size_t here_, left_, least_ = 0, place_ = 0;
  const std::byte* at_ = nullptr;
};

}  // namespace

std::size_t stream_bytes(std::size_t numbers, std::size_t entries) {
  return sparse_bytes(numbers, entries, sizeof(float));
}

std::size_t write_stream(std::span<const float> x, std::span<std::byte> out) {
  constexpr std::size_t some = 1024;
  std::uint32_t places[some];
  std::size_t entries = 0;
  SparseWriter writer(out.data(), x.size());
  if (stream_bytes(x.size(), 0) > out.size()) return 0;
  for (std::size_t i = 0; i < x.size(); i += some) {
    const std::size_t found = places_at_least(x.subspan(i, std::min(some, x.size() - i)), Side::both, 1,
                                              static_cast<std::uint32_t>(i), places);
    entries += found;
    if (stream_bytes(x.size(), entries) > out.size()) return 0;
    for (std::size_t k = 0; k < found; ++k) writer.entry<sizeof(float)>(places[k], false, &x[places[k]]);
  }
  return writer.finish();
}

std::size_t merge_streams(std::span<const std::byte> a, std::span<const std::byte> b, std::size_t numbers,
                          std::span<std::byte> out) {
  invariant(out.size() >= a.size() + b.size(), "there is room for the sum of two streams");
  BytesIn first(a), second(b);
  SparseWriter writer(out.data(), numbers);
  for (std::size_t begin = 0; begin < numbers; begin += sparse_block) {
    const std::size_t here = std::min(numbers - begin, sparse_block);
    StreamBlock x(first, here), y(second, here);
    while (!x.empty() || !y.empty()) {
      const std::size_t place = std::min(x.place(), y.place());
      const bool in_x = x.place() == place, in_y = y.place() == place;
      const float value = in_x && in_y ? x.value() + y.value() : in_x ? x.value() : y.value();
      writer.entry<sizeof(float)>(begin + place, false, &value);
      if (in_x) x.next();
      if (in_y) y.next();
    }
  }
  first.done();
  second.done();
  return writer.finish();
}

void add_stream(std::span<const std::byte> stream, std::span<float> out) {
  BytesIn in(stream);
  for (std::size_t begin = 0; begin < out.size(); begin += sparse_block)
    for (StreamBlock block(in, std::min(out.size() - begin, sparse_block)); !block.empty(); block.next())
      out[begin + block.place()] += block.value();
  in.done();
}

}  // namespace echelon::codecs
