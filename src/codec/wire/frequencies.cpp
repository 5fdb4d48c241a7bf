#include "codec/wire/frequencies.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/wire/frequencies.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::codecs::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using DB = hn::ScalableTag<std::uint8_t>;

HWY_ALIGN constexpr std::uint8_t eight_bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};

// Where the first vector of bytes is of which one is not in the set (rows[b / 128 * 16 + b % 16] has bit b / 16 % 8 for
// every b that is), or where the whole vectors end.
HWY_FLATTEN std::size_t find_stranger(const std::uint8_t* bytes, std::size_t n, const std::uint8_t* rows) {
  const DB d;
  const hn::Repartition<std::uint16_t, DB> words;
  const auto lower = hn::LoadDup128(d, rows), upper = hn::LoadDup128(d, rows + 16), bit = hn::LoadDup128(d, eight_bits);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto b = hn::LoadU(d, bytes + i);
    const auto column = hn::And(b, hn::Set(d, 0x8F));  // with its highest bit a lookup gives 0
    const auto row = hn::Or(hn::TableLookupBytesOr0(lower, column),
                            hn::TableLookupBytesOr0(upper, hn::Xor(column, hn::Set(d, 0x80))));
    const auto high = hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(words, b))), hn::Set(d, 0x0F));
    const auto known = hn::And(row, hn::TableLookupBytes(bit, high));
    if (!hn::AllFalse(d, hn::Eq(known, hn::Zero(d)))) break;
  }
  return i;
}

}  // namespace
}  // namespace echelon::codecs::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

namespace echelon::codecs {

HWY_EXPORT(find_stranger);

namespace {

constexpr std::size_t run = 512, runs_every = 8 * run, many = 64 * runs_every;

using Counts = std::array<std::uint32_t, 4 * 256>;  // four tables: equal neighbours do not wait for each other

void count(std::span<const std::byte> bytes, Counts& counts) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
  std::size_t i = 0;
  for (; i + 4 <= bytes.size(); i += 4)
    for (std::size_t k = 0; k < 4; ++k) ++counts[k * 256 + from[i + k]];
  for (; i < bytes.size(); ++i) ++counts[from[i]];
}

std::array<std::uint64_t, 256> sum(const Counts& counts) {
  std::array<std::uint64_t, 256> sums;
  for (std::size_t v = 0; v < 256; ++v)
    sums[v] = std::uint64_t{counts[v]} + counts[256 + v] + counts[512 + v] + counts[768 + v];
  return sums;
}

// Counts what is not counted yet, each value at least once.
void count_strangers(std::span<const std::byte> bytes, Counts& counts) {
  const auto known = sum(counts);
  alignas(16) std::uint8_t rows[32] = {};
  const auto add = [&](std::size_t v) { rows[v / 128 * 16 + v % 16] |= static_cast<std::uint8_t>(1u << (v / 16 % 8)); };
  for (std::size_t v = 0; v < 256; ++v)
    if (known[v] > 0) add(v);
  constexpr std::size_t step =
      16;  // no vector is shorter: after each stranger there is at least one value less to find
  while (!bytes.empty()) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(bytes.data());
    bytes = bytes.subspan(HWY_DYNAMIC_DISPATCH(find_stranger)(from, bytes.size(), rows));
    const auto here = bytes.first(std::min(step, bytes.size()));
    for (const std::byte b : here) {
      const auto v = static_cast<std::uint8_t>(b);
      if ((rows[v / 128 * 16 + v % 16] & (1u << (v / 16 % 8))) != 0) continue;
      ++counts[v];
      add(v);
    }
    bytes = bytes.subspan(here.size());
  }
}

}  // namespace

std::array<std::uint32_t, 256> frequencies(std::span<const std::byte> bytes) {
  Counts tables{};
  if (bytes.size() < many) {
    count(bytes, tables);
  } else {
    for (std::size_t i = 0; i + runs_every <= bytes.size(); i += runs_every) count(bytes.subspan(i, run), tables);
    count_strangers(bytes, tables);
  }
  const auto counts = sum(tables);
  std::uint64_t total = 0;
  for (const std::uint64_t c : counts) total += c;
  std::array<std::uint32_t, 256> f{};
  std::uint32_t sum = 0;
  for (std::size_t v = 0; v < 256; ++v) {
    if (counts[v] > 0) f[v] = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(counts[v] * frequency_sum / total));
    sum += f[v];
  }
  while (sum != frequency_sum) {  // the most frequent ones give or take what rounding has left
    auto& most = *std::ranges::max_element(f);
    if (sum < frequency_sum) {
      most += frequency_sum - sum;
      sum = frequency_sum;
    } else {
      const std::uint32_t off = std::min(sum - frequency_sum, most / 2);
      most -= off;
      sum -= off;
    }
  }
  return f;
}

}  // namespace echelon::codecs
#endif
