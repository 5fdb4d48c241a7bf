#include "kernels/dropout.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dropout.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::HWY_NAMESPACE {
namespace {

using DU = hn::RebindToUnsigned<D>;
using VU = hn::Vec<DU>;
using DW = hn::RepartitionToWide<DU>;  // 64-bit lanes, one Philox block each
using VW = hn::Vec<DW>;

struct Words {
  VU first, second;  // words 0 .. width-1 and width .. 2 width-1
};

// Philox 4x32-10 on several vectors of consecutive blocks, one block a 64-bit lane. Only the lower half of a lane
// counts between the rounds; the upper one holds whatever is cheapest.
class Philox {
 public:
  static constexpr std::size_t words_each = 2 * width;  // in one Words

  explicit HWY_INLINE Philox(const StreamId& id) : step_(id.step), shard_(id.shard), layer_(id.layer) {
    auto k0 = static_cast<std::uint32_t>(id.seed), k1 = static_cast<std::uint32_t>(id.seed >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) key0_[round] = k0, key1_[round] = k1;
  }

  // The words from 4 * block on, in stream order. Two vectors' worth at once, because one alone would spend its time
  // waiting for its own multiplications.
  template <std::size_t count>
  HWY_INLINE void words(std::uint32_t block, Words (&out)[count]) const {
    // Interleaving works within 128 bits; with four lanes, this order of blocks makes the result come out sorted.
    HWY_ALIGN static constexpr std::uint64_t order[4] = {0, width == 8 ? 2 : 1, 1, 3};
    const VU m0 = hn::Set(DU(), 0xD2511F53u), m1 = hn::Set(DU(), 0xCD9E8D57u);
    VW c0[count], c1[count], c2[count], c3[count];
    for (std::size_t k = 0; k < count; ++k) {
      c0[k] = hn::Add(word(block + static_cast<std::uint32_t>(k * words_each / 4)), hn::Load(DW(), order));
      c1[k] = word(step_);
      c2[k] = word(shard_);
      c3[k] = word(layer_);
    }
    for (int round = 0; round < 10; ++round) {
      const VW k0 = word(key0_[round]), k1 = word(key1_[round]);
      for (std::size_t k = 0; k < count; ++k) {
        const VW p0 = hn::MulEven(hn::BitCast(DU(), c0[k]), m0), p1 = hn::MulEven(hn::BitCast(DU(), c2[k]), m1);
        c0[k] = hn::Xor(hn::ShiftRight<32>(p1), hn::Xor(c1[k], k0));
        c2[k] = hn::Xor(hn::ShiftRight<32>(p0), hn::Xor(c3[k], k1));
        c1[k] = p1;
        c3[k] = p0;
      }
    }
    const VW low = word(0xFFFFFFFFu);
    for (std::size_t k = 0; k < count; ++k) {
      const VW c01 = hn::Or(hn::And(c0[k], low), hn::ShiftLeft<32>(c1[k]));
      const VW c23 = hn::Or(hn::And(c2[k], low), hn::ShiftLeft<32>(c3[k]));
      out[k] = {hn::BitCast(DU(), hn::InterleaveLower(DW(), c01, c23)),
                hn::BitCast(DU(), hn::InterleaveUpper(DW(), c01, c23))};
    }
  }

 private:
  static HWY_INLINE VW word(std::uint64_t x) { return hn::Set(DW(), x); }
  std::uint64_t step_, shard_, layer_, key0_[10], key1_[10];  // 64 bits: broadcast straight from memory
};

// Calls f(at, words of those elements) for n elements; the first has word 4 * block of the stream.
template <class F>
HWY_INLINE void for_each_word(const StreamId& id, std::uint32_t block, std::size_t n, const F& f) {
  constexpr std::size_t together = 2 * Philox::words_each;
  const Philox philox(id);
  Words w[2];
  std::size_t i = 0;
  for (; i + together <= n; i += together, block += together / 4) {
    philox.words(block, w);
    f(Whole{i}, w[0].first);
    f(Whole{i + width}, w[0].second);
    f(Whole{i + 2 * width}, w[1].first);
    f(Whole{i + 3 * width}, w[1].second);
  }
  if (i == n) return;
  philox.words(block, w);
  const VU rest[] = {w[0].first, w[0].second, w[1].first, w[1].second};
  std::size_t k = 0;
  for (; i + width <= n; i += width, ++k) f(Whole{i}, rest[k]);
  if (i < n) f(Rest{i, n - i}, rest[k]);
}

HWY_FLATTEN void drop(const StreamId& id, std::uint32_t threshold, float scale, const float* x, float* y, std::size_t n,
                      std::uint32_t block) {
  const VU limit = hn::Set(DU(), threshold);
  const V factor = set(scale);
  for_each_word(id, block, n, [&](auto at, VU words) HWY_ATTR {
    at.store(hn::IfThenZeroElse(hn::RebindMask(D(), hn::Lt(words, limit)), hn::Mul(at.load(x), factor)), y);
  });
}

HWY_FLATTEN void uniform(const StreamId& id, std::uint32_t block, float* out, std::size_t n) {
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

void dropout(const Stream& stream, float p, const float* x, float* y, std::size_t n, std::uint64_t first) {
  invariant(p >= 0 && p < 1 && first % 4 == 0, "dropout's share is in [0, 1), and a part begins with a block of words");
  const auto threshold = static_cast<std::uint32_t>(static_cast<double>(p) * 0x1p32);
  HWY_DYNAMIC_DISPATCH(drop)
  (stream.id(), threshold, static_cast<float>(1 / (1 - static_cast<double>(p))), x, y, n,
   static_cast<std::uint32_t>(first / 4));
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
