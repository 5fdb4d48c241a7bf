#include "parallel/server/filter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "parallel/rules/common.h"

namespace echelon::exchanges {

namespace {

constexpr std::uint32_t list_follows = 0x80000000u;

std::size_t blocks_of(const FilterSettings& s, std::size_t floats) { return (floats + s.block - 1) / s.block; }

float largest(std::span<const float> values) {
  float most = 0;
  for (const float v : values) most = std::max(most, std::abs(v));
  return most;
}

}  // namespace

PushFilter::PushFilter(const FilterSettings& settings, std::size_t floats)
    : settings_(settings), kept_(rules::zeros(floats)) {
  const std::size_t blocks = blocks_of(settings, floats);
  chosen_.reserve(blocks);
  cached_.assign(blocks + 1, 0);
  bytes_.resize(4 + 4 * blocks + 4 * floats);
}

bool PushFilter::passes(std::size_t block, std::span<const float> weights, double rate) const {
  if (!settings_.significant) return true;
  const std::size_t begin = block * settings_.block, n = std::min(settings_.block, weights.size() - begin);
  const double change = rate * largest(kept_.as<float>().subspan(begin, n));
  return change > settings_.threshold * largest(weights.subspan(begin, n));
}

std::span<const std::byte> PushFilter::write(std::span<const float> values, std::span<const float> weights, double rate,
                                             const Stream& random) {
  const std::span<float> kept = kept_.as<float>();
  kernels::add_into(kept.data(), values.data(), kept.size());
  const std::size_t blocks = cached_.size() - 1;
  chosen_.clear();
  for (std::size_t b = 0; b < blocks; ++b) {
    if (!passes(b, weights, rate)) continue;
    const std::size_t begin = b * settings_.block, n = std::min(settings_.block, kept.size() - begin);
    if (settings_.skip > 0 && random.uniform(b) < static_cast<float>(settings_.skip)) {
      if (settings_.unbiased) std::ranges::fill(kept.subspan(begin, n), 0.0f);
      continue;
    }
    chosen_.push_back(static_cast<std::uint32_t>(b));
  }
  left_out_ = blocks - chosen_.size();

  const bool same = cached_[0] == chosen_.size() + 1 && std::equal(chosen_.begin(), chosen_.end(), cached_.begin() + 1);
  std::byte* at = bytes_.data();
  auto put = [&](const void* from, std::size_t n) { std::memcpy(at, from, n), at += n; };
  const std::uint32_t head = static_cast<std::uint32_t>(chosen_.size()) | (same ? 0 : list_follows);
  put(&head, 4);
  if (!same) {
    put(chosen_.data(), 4 * chosen_.size());
    cached_[0] = static_cast<std::uint32_t>(chosen_.size() + 1);  // 0: nothing was sent yet
    std::ranges::copy(chosen_, cached_.begin() + 1);
  }
  const auto larger = static_cast<float>(settings_.unbiased ? 1 / (1 - settings_.skip) : 1);
  for (const std::uint32_t b : chosen_) {
    const std::size_t begin = b * settings_.block, n = std::min(settings_.block, kept.size() - begin);
    const std::span<float> block = kept.subspan(begin, n);
    if (settings_.unbiased) kernels::scale(block.data(), block.data(), larger, n);
    put(block.data(), 4 * n);
    std::ranges::fill(block, 0.0f);
  }
  return {bytes_.data(), static_cast<std::size_t>(at - bytes_.data())};
}

std::vector<StateSpan> PushFilter::state() { return {as_state("kept", kept_), as_state("cached", cached_)}; }

FilterReader::FilterReader(const FilterSettings& settings, std::size_t floats)
    : settings_(settings), cached_(blocks_of(settings, floats) + 1) {}

void FilterReader::read(std::span<const std::byte> bytes, std::span<float> out) {
  const std::size_t blocks = cached_.size() - 1;
  std::uint32_t head = 0;
  if (bytes.size() < 4) fail("a filtered push of {} bytes is too short", bytes.size());
  std::memcpy(&head, bytes.data(), 4);
  bytes = bytes.subspan(4);
  const std::size_t count = head & ~list_follows;
  if (count > blocks) fail("a filtered push has {} blocks, and there are {}", count, blocks);
  if (head & list_follows) {
    if (bytes.size() < 4 * count) fail("a filtered push ends within its list");
    cached_[0] = static_cast<std::uint32_t>(count + 1);
    std::memcpy(cached_.data() + 1, bytes.data(), 4 * count);
    bytes = bytes.subspan(4 * count);
  } else if (cached_[0] != count + 1) {
    fail("a filtered push refers to a list that was never sent");
  }
  std::ranges::fill(out, 0.0f);
  for (std::size_t i = 1; i <= count; ++i) {
    const std::size_t begin = cached_[i] * settings_.block;
    if (cached_[i] >= blocks) fail("a filtered push names block {}, and there are {}", cached_[i], blocks);
    const std::size_t n = std::min(settings_.block, out.size() - begin);
    if (bytes.size() < 4 * n) fail("a filtered push ends within a block");
    std::memcpy(out.data() + begin, bytes.data(), 4 * n);
    bytes = bytes.subspan(4 * n);
  }
  if (!bytes.empty()) fail("a filtered push has {} bytes too many", bytes.size());
}

std::vector<StateSpan> FilterReader::state() { return {as_state("cached", cached_)}; }

}  // namespace echelon::exchanges
