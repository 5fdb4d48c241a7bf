// What comes in a message to a server, from a rank that may write anything into it: it is refused with Failure or
// changes the numbers of its key and nothing beside them. The first byte chooses the kind of message, the second its
// key's size; the others are cut into messages, for some readers remember what came before.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "codec/wire/sparse_stream.h"
#include "parallel/server/factors.h"
#include "parallel/server/filter.h"
#include "parallel/server/sites.h"

namespace {

using namespace echelon;
using Bytes = std::span<const std::byte>;

// Memory of exactly that size, so that a byte more is noticed.
struct Exact {
  explicit Exact(Bytes from) : size(from.size()), memory(std::make_unique<std::byte[]>(size)) {
    std::ranges::copy(from, memory.get());
  }
  Bytes bytes() const { return {memory.get(), size}; }
  std::size_t size;
  std::unique_ptr<std::byte[]> memory;
};

void read_factors(Bytes bytes, std::size_t size) {
  const std::size_t out = 1 + size % 8, in = 1 + size % 5, begin = size % 3;
  const std::vector<ThinProduct> products{
      {.name = "layer", .range = {begin, begin + out * in}, .out = out, .in = in, .rows = 1 + size % 2}};
  const Range key{0, begin + out * in + size % 4};
  const exchanges::FactorMessage message(key, products);
  std::vector<float> numbers(bytes.size() / sizeof(float)), gradient(key.count());
  std::copy_n(bytes.begin(), numbers.size() * sizeof(float), reinterpret_cast<std::byte*>(numbers.data()));
  Buffer scratch;
  message.read(numbers, gradient, scratch);
}

void merge(Bytes bytes, std::size_t numbers) {
  const Exact a(bytes.first(bytes.size() / 2)), b(bytes.subspan(bytes.size() / 2));
  std::vector<std::byte> merged(a.size + b.size);
  merged.resize(codecs::merge_streams(a.bytes(), b.bytes(), numbers, merged));
  std::vector<float> sum(numbers), one_by_one(numbers);
  codecs::add_stream(merged, sum);
  codecs::add_stream(a.bytes(), one_by_one);
  codecs::add_stream(b.bytes(), one_by_one);
  const auto same = [](float x, float y) { return x == y || (x != x && y != y); };
  invariant(std::ranges::equal(sum, one_by_one, same), "a merged stream is the sum of its two");
}

}  // namespace

int fuzz_message(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const std::size_t kind = data[0] % 4, floats = data[1] % 2 == 0 ? data[1] / 2u : (std::size_t{1} << 15) + data[1];
  Bytes rest = std::as_bytes(std::span(data + 2, size - 2));
  const exchanges::FilterSettings settings{.skip = 0.5, .block = 1 + data[1] % 7u};
  exchanges::FilterReader filter(settings, floats);
  std::vector<float> out(floats);
  while (!rest.empty()) {
    const std::size_t length = std::min(rest.size() - 1, static_cast<std::size_t>(rest[0]));
    const Exact message(rest.subspan(1, length));
    rest = rest.subspan(1 + length);
    try {
      if (kind == 0) filter.read(message.bytes(), out);
      if (kind == 1) exchanges::SignificantChanges::apply(message.bytes(), out);
      if (kind == 2) read_factors(message.bytes(), data[1]);
      if (kind == 3) merge(message.bytes(), floats);
    } catch (const Failure&) {
    }
  }
  return 0;
}
