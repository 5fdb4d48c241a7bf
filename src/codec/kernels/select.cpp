#include "codec/kernels/select.h"

#include "kernels/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/kernels/select.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>

#include "kernels/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace echelon::codecs::HWY_NAMESPACE {
namespace {

using namespace kernels::HWY_NAMESPACE;
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;

// order_bits of a vector.
template <bool both>
HWY_INLINE VI ordered(V x, VI flip) {
  const VI bits = hn::BitCast(DI(), x);
  if constexpr (both)
    return hn::And(bits, flip);  // `flip` is everything but the sign
  else
    return hn::Max(hn::Xor(bits, flip), hn::Zero(DI()));  // the other side is negative as an integer
}

// f(position) for every number of x for which accept(bits) holds.
template <bool both, class Accept, class F>
HWY_INLINE void for_each_accepted(const float* x, std::size_t n, VI flip, const Accept& accept, const F& f) {
  constexpr std::size_t together = 32;
  std::size_t i = 0;
  for (; i + together <= n; i += together) {
    std::uint32_t found = 0;
    unrolled<together / width>([&](auto k) HWY_ATTR {
      std::uint8_t bits[8];
      hn::StoreMaskBits(DI(), accept(ordered<both>(hn::LoadU(D(), x + i + k * width), flip)), bits);
      found |= static_cast<std::uint32_t>(bits[0]) << (k * width);
    });
    for (; found != 0; found &= found - 1) f(i + static_cast<std::size_t>(std::countr_zero(found)));
  }
  for (; i < n; i += width) {
    const std::size_t left = n - i < width ? n - i : width;
    std::uint8_t bits[8];
    hn::StoreMaskBits(DI(), accept(ordered<both>(load_n(x + i, left), flip)), bits);
    std::uint32_t found = bits[0] & ((1u << left) - 1);
    for (; found != 0; found &= found - 1) f(i + static_cast<std::size_t>(std::countr_zero(found)));
  }
}

template <bool both>
HWY_INLINE std::size_t find(const float* x, std::size_t n, VI flip, std::uint32_t bits, std::uint32_t first,
                            std::uint32_t* out) {
  const VI least = hn::Set(DI(), static_cast<std::int32_t>(bits - 1));
  std::size_t count = 0;
  for_each_accepted<both>(
      x, n, flip, [&](VI v) HWY_ATTR { return hn::Gt(v, least); },
      [&](std::size_t i) HWY_ATTR { out[count++] = first + static_cast<std::uint32_t>(i); });
  return count;
}

// Counts, by the bits from `shift` on, the numbers whose bits above `above` are `prefix`.
template <bool both, int above, int shift>
HWY_INLINE void count_within(const float* x, std::size_t n, VI flip, std::uint32_t flip_bits, std::uint32_t prefix,
                             std::uint32_t* counts) {
  const VI wanted = hn::Set(DI(), static_cast<std::int32_t>(prefix));
  for_each_accepted<both>(
      x, n, flip, [&](VI v) HWY_ATTR { return hn::Eq(hn::ShiftRight<above>(v), wanted); },
      [&](std::size_t i) HWY_ATTR {
        std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]);
        bits = both ? bits & flip_bits : bits ^ flip_bits;
        ++counts[(bits & ((1u << above) - 1)) >> shift];
      });
}

HWY_FLATTEN std::size_t find_places(const float* x, std::size_t n, Side side, std::uint32_t bits, std::uint32_t first,
                                    std::uint32_t* out) {
  if (side == Side::both) return find<true>(x, n, hn::Set(DI(), 0x7FFFFFFF), bits, first, out);
  return find<false>(x, n, hn::Set(DI(), static_cast<std::int32_t>(detail::flipped(side))), bits, first, out);
}

HWY_FLATTEN void count_coarse(const float* x, std::size_t n, Side side, std::uint32_t prefix, std::uint32_t* counts) {
  if (side == Side::both)
    count_within<true, detail::coarse, detail::fine>(x, n, hn::Set(DI(), 0x7FFFFFFF), 0x7FFFFFFFu, prefix, counts);
  else
    count_within<false, detail::coarse, detail::fine>(
        x, n, hn::Set(DI(), static_cast<std::int32_t>(detail::flipped(side))), detail::flipped(side), prefix, counts);
}

HWY_FLATTEN void count_fine(const float* x, std::size_t n, Side side, std::uint32_t prefix, std::uint32_t* counts) {
  if (side == Side::both)
    count_within<true, detail::fine, 0>(x, n, hn::Set(DI(), 0x7FFFFFFF), 0x7FFFFFFFu, prefix, counts);
  else
    count_within<false, detail::fine, 0>(x, n, hn::Set(DI(), static_cast<std::int32_t>(detail::flipped(side))),
                                         detail::flipped(side), prefix, counts);
}

}  // namespace
}  // namespace echelon::codecs::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace echelon::codecs {

HWY_EXPORT(find_places);
HWY_EXPORT(count_coarse);
HWY_EXPORT(count_fine);

namespace {

// The table's entry, from the top, in which the k-th is; k becomes its rank within that entry.
template <class Count>
std::uint32_t entry_of(std::uint32_t entries, std::size_t& k, const Count& count) {
  for (std::uint32_t entry = entries; entry-- > 0;) {
    const std::size_t here = count(entry);
    if (k <= here) return entry;
    k -= here;
  }
  return 0;
}

}  // namespace

Largest Selector::largest(std::span<const float> x, std::size_t k, Side side) {
  invariant(x.size() < (std::size_t{1} << 32), "selected from at most 2^32 numbers");
  k = std::min(k, x.size());
  if (k == 0) return {0x7FFFFFFFu, 0};
  counts_.fill(0);
  std::size_t i = 0;
  const auto count = [&](auto key) {
    for (; i + 4 <= x.size(); i += 4) {
      ++counts_[key(x[i]) >> detail::coarse];
      ++counts_[1024 + (key(x[i + 1]) >> detail::coarse)];
      ++counts_[2048 + (key(x[i + 2]) >> detail::coarse)];
      ++counts_[3072 + (key(x[i + 3]) >> detail::coarse)];
    }
    for (; i < x.size(); ++i) ++counts_[key(x[i]) >> detail::coarse];
  };
  if (side == Side::both)
    count([](float v) { return std::bit_cast<std::uint32_t>(v) & 0x7FFFFFFFu; });
  else
    count([flip = detail::flipped(side)](float v) {
      return static_cast<std::uint32_t>(
          std::max(std::bit_cast<std::int32_t>(std::bit_cast<std::uint32_t>(v) ^ flip), 0));
    });
  const std::uint32_t first = entry_of(1024, k, [&](std::uint32_t e) {
    return std::size_t{counts_[e]} + counts_[1024 + e] + counts_[2048 + e] + counts_[3072 + e];
  });
  const auto finer = [&](std::uint32_t entries) {
    return entry_of(entries, k, [&](std::uint32_t e) { return std::size_t{finer_[e]}; });
  };
  finer_.fill(0);
  HWY_DYNAMIC_DISPATCH(count_coarse)(x.data(), x.size(), side, first, finer_.data());
  const std::uint32_t second = finer(1u << (detail::coarse - detail::fine));
  finer_.fill(0);
  HWY_DYNAMIC_DISPATCH(count_fine)
  (x.data(), x.size(), side, (first << (detail::coarse - detail::fine)) | second, finer_.data());
  const std::uint32_t bits = (first << detail::coarse) | (second << detail::fine) | finer(1u << detail::fine);
  return {bits, bits == 0 ? 0 : k};
}

std::size_t places_at_least(std::span<const float> x, Side side, std::uint32_t bits, std::uint32_t first,
                            std::uint32_t* out) {
  invariant(bits > 0, "zeros are never looked for");
  return HWY_DYNAMIC_DISPATCH(find_places)(x.data(), x.size(), side, bits, first, out);
}

namespace {

constexpr std::size_t chunk = 4096;         // numbers looked at in one go: so much room is needed beyond what is found
constexpr std::size_t sample_every = 1024;  // some neighbours of every 1024

// So many neighbours: a cache line of a long run, which has enough of them.
constexpr std::size_t sample_run(std::size_t numbers) { return numbers < (std::size_t{1} << 18) ? 64 : 16; }

}  // namespace

Selector::Selector(std::size_t numbers, std::size_t most) { reserve(numbers, most); }

void Selector::make_room(std::size_t places) {
  if (places_.size() >= places) return;
  places_.resize(places);
  numbers_.resize(places);
}

// Room for twice as many as wanted, and some.
void Selector::reserve(std::size_t numbers, std::size_t most) {
  const std::size_t room = std::min(numbers, 2 * most + numbers / 64) + chunk;
  make_room(room);
  const std::size_t sampled = numbers / sample_every * sample_run(numbers);
  if (sample_.size() < sampled) sample_.resize(sampled);
}

std::span<const float> Selector::sample_of(std::span<const float> x) {
  const std::size_t run = sample_run(x.size()), sampled = x.size() / sample_every * run;
  if (sampled < 1024) return {};
  for (std::size_t i = 0; i < sampled / run; ++i)
    std::copy_n(x.data() + i * sample_every, run, sample_.data() + i * run);
  return std::span(sample_).first(sampled);
}

void Selector::set_limit(std::span<const float> sample, double expected, Side side) {
  side_ = side;
  found_ = 0;
  const auto rank = static_cast<std::size_t>(expected + 4 * std::sqrt(expected) + 8);
  limit_ = sample.empty() ? 0 : largest(sample, rank, side).bits;
}

void Selector::collect(std::span<const float> x) {
  for (std::size_t i = 0; i < x.size() && limit_ > 0; i += chunk) {
    const auto few = x.subspan(i, std::min(chunk, x.size() - i));
    if (found_ + few.size() > places_.size()) {
      limit_ = 0;  // no room: there are far more than expected
      return;
    }
    std::uint32_t* to = places_.data() + found_;
    const std::size_t more = places_at_least(few, side_, limit_, 0, to);
    for (std::size_t k = 0; k < more; ++k) {
      numbers_[found_ + k] = few[to[k]];
      to[k] += static_cast<std::uint32_t>(i);
    }
    found_ += more;
  }
}

std::span<const std::uint32_t> Selector::places(std::span<const float> x, std::size_t k, Side side) {
  k = std::min(k, x.size());
  reserve(x.size(), k);
  const auto sample = sample_of(x);
  const double all = static_cast<double>(std::max<std::size_t>(x.size(), 1));
  set_limit(sample, static_cast<double>(k) * static_cast<double>(sample.size()) / all, side);
  collect(x);
  return keep_largest(x, k);
}

std::span<const std::uint32_t> Selector::keep_largest(std::span<const float> x, std::size_t k) {
  if (k == 0) {
    found_ = 0;
    return {};
  }
  Largest limit;
  if (limit_ > 0 && found_ >= k) {
    // The k-th largest of those that were collected is that of all.
    limit = largest(std::span(numbers_).first(found_), k, side_);
  } else {
    limit = largest(x, k, side_);
    const std::uint32_t least = limit.ties > 0 ? limit.bits : limit.bits + 1;
    for (int time = 0; time < 2; ++time) {
      limit_ = least;
      found_ = 0;
      collect(x);
      if (limit_ > 0) break;
      make_room(x.size() + chunk);  // very many equal ones
    }
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < found_; ++i) {
    const std::uint32_t bits = order_bits(numbers_[i], side_);
    if (bits < limit.bits || (bits == limit.bits && limit.ties == 0)) continue;
    if (bits == limit.bits) --limit.ties;
    numbers_[kept] = numbers_[i];
    places_[kept++] = places_[i];
  }
  found_ = kept;
  return std::span(places_).first(kept);
}

}  // namespace echelon::codecs
#endif
