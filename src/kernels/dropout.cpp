#include "kernels/dropout.h"

#include "kernels/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dropout.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {
namespace {

using DU = hn::RebindToUnsigned<D>;
using VU = hn::Vec<DU>;
using DW = hn::RepartitionToWide<DU>;  // 64-bit lanes, one Philox block each
using VW = hn::Vec<DW>;

inline constexpr std::size_t group = 2 * width;  // words that one call of `words` gives

struct Words {
  VU first, second;  // words 0 .. width-1 and width .. 2 width-1
};

// Philox 4x32-10 on as many consecutive blocks as there are 64-bit lanes, beginning with `block`; the words in stream
// order. Only the lower half of a lane counts between the rounds; the upper one holds whatever is cheapest.
class Philox {
 public:
  explicit HWY_INLINE Philox(const StreamId& id)
      : step_(word(id.step)), shard_(word(id.shard)), layer_(word(id.layer)), seed_(id.seed) {}

  HWY_INLINE Words words(std::uint32_t block) const {
    // Interleaving works within 128 bits; with four lanes, this order of blocks makes the result come out sorted.
    HWY_ALIGN static constexpr std::uint64_t order[4] = {0, width == 8 ? 2 : 1, 1, 3};
    VW c0 = hn::Add(word(block), hn::Load(DW(), order)), c1 = step_, c2 = shard_, c3 = layer_;
    std::uint32_t k0 = static_cast<std::uint32_t>(seed_), k1 = static_cast<std::uint32_t>(seed_ >> 32);
    const VU m0 = hn::Set(DU(), 0xD2511F53u), m1 = hn::Set(DU(), 0xCD9E8D57u);
    for (int round = 0; round < 10; ++round) {
      const VW p0 = hn::MulEven(hn::BitCast(DU(), c0), m0), p1 = hn::MulEven(hn::BitCast(DU(), c2), m1);
      c0 = hn::Xor(hn::ShiftRight<32>(p1), hn::Xor(c1, word(k0)));
      c2 = hn::Xor(hn::ShiftRight<32>(p0), hn::Xor(c3, word(k1)));
      c1 = p1;
      c3 = p0;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const VW low = word(0xFFFFFFFFu);
    const VW c01 = hn::Or(hn::And(c0, low), hn::ShiftLeft<32>(c1)),
             c23 = hn::Or(hn::And(c2, low), hn::ShiftLeft<32>(c3));
    return {hn::BitCast(DU(), hn::InterleaveLower(DW(), c01, c23)),
            hn::BitCast(DU(), hn::InterleaveUpper(DW(), c01, c23))};
  }

 private:
  static HWY_INLINE VW word(std::uint32_t x) { return hn::Set(DW(), x); }
  VW step_, shard_, layer_;
  std::uint64_t seed_;
};

// Calls f(at, words of those elements) for n elements; the first has word 4 * block of the stream.
template <class F>
HWY_INLINE void for_each_word(const StreamId& id, std::uint32_t block, std::size_t n, const F& f) {
  const Philox philox(id);
  std::size_t i = 0;
  for (; i + group <= n; i += group, block += group / 4) {
    const Words w = philox.words(block);
    f(Whole{i}, w.first);
    f(Whole{i + width}, w.second);
  }
  if (i == n) return;
  const Words w = philox.words(block);
  if (i + width <= n) {
    f(Whole{i}, w.first);
    i += width;
    if (i < n) f(Rest{i, n - i}, w.second);
  } else {
    f(Rest{i, n - i}, w.first);
  }
}

void drop(const StreamId& id, std::uint32_t threshold, float scale, const float* x, float* y, std::size_t n) {
  const VU limit = hn::Set(DU(), threshold);
  const V factor = set(scale);
  for_each_word(id, 0, n, [&](auto at, VU words) HWY_ATTR {
    at.store(hn::IfThenZeroElse(hn::RebindMask(D(), hn::Lt(words, limit)), hn::Mul(at.load(x), factor)), y);
  });
}

void uniform(const StreamId& id, std::uint32_t block, float* out, std::size_t n) {
  const hn::RebindToSigned<D> di;
  const V unit = set(0x1p-24f);
  for_each_word(id, block, n, [&](auto at, VU words) HWY_ATTR {
    at.store(hn::Mul(hn::ConvertTo(D(), hn::BitCast(di, hn::ShiftRight<8>(words))), unit), out);
  });
}

}  // namespace
}  // namespace echelon::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "base/error.h"

namespace echelon::kernels {

HWY_EXPORT(drop);
HWY_EXPORT(uniform);

void dropout(const Stream& stream, float p, const float* x, float* y, std::size_t n) {
  invariant(p >= 0 && p < 1, "dropout's share is in [0, 1)");
  const auto threshold = static_cast<std::uint32_t>(static_cast<double>(p) * 0x1p32);
  HWY_DYNAMIC_DISPATCH(drop)(stream.id(), threshold, static_cast<float>(1 / (1 - static_cast<double>(p))), x, y, n);
}

void fill_uniform(const Stream& stream, std::uint64_t offset, std::span<float> out) {
  // Single elements until a block of four words begins.
  const std::size_t head = std::min<std::size_t>((4 - offset % 4) % 4, out.size());
  ref_fill_uniform(stream, offset, out.first(head));
  HWY_DYNAMIC_DISPATCH(uniform)
  (stream.id(), static_cast<std::uint32_t>((offset + head) / 4), out.data() + head, out.size() - head);
}

void fill_normal(const Stream& stream, std::uint64_t offset, std::span<float> out) {
  ref_fill_normal(stream, offset, out);
}

}  // namespace echelon::kernels
#endif
