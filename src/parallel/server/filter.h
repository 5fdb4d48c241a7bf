#pragma once
// What a worker leaves out of a push (Li et al.'s Parameter Server). A key is looked at in blocks of numbers:
//
//   significant   only blocks whose change would move the weights by more than `threshold`, relative to the largest
//                 weight of the block; the others are kept and added to the next push
//   skip          every block is left out with probability `skip`: kept as well, or (unbiased) dropped, and what
//                 is sent is made 1 / (1 - skip) times as large
//   key caching   the list of blocks is sent only if it differs from the last one that this worker sent for this key
//
// On the wire: a 32-bit word with the number of blocks and, in the highest bit, whether the list follows; the list; the
// blocks' numbers. One PushFilter for a key at a worker; one FilterReader for a key and a worker at a server.

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "parallel/rule.h"

namespace echelon::exchanges {

struct FilterSettings {
  bool significant = false;
  double threshold = 0;
  double skip = 0;
  bool unbiased = false;  // skipped blocks are dropped, and others made larger
  std::size_t block = 64;
  bool any() const { return significant || skip > 0; }
};

class PushFilter {
 public:
  PushFilter(const FilterSettings& settings, std::size_t floats);

  // `values` is a contribution to weights that the server will move by about rate * values.
  std::span<const std::byte> write(std::span<const float> values, std::span<const float> weights, double rate,
                                   const Stream& random);
  std::size_t left_out() const { return left_out_; }  // blocks, by the last write
  std::vector<StateSpan> state();

 private:
  bool passes(std::size_t block, std::span<const float> weights, double rate) const;

  FilterSettings settings_;
  Buffer kept_;  // what was left out so far
  std::vector<std::uint32_t> chosen_;
  std::vector<std::uint32_t>
      cached_;  // one more than the length of the list that was sent last (0: none was), then the list
  std::vector<std::byte> bytes_;
  std::size_t left_out_ = 0;
};

class FilterReader {
 public:
  FilterReader(const FilterSettings& settings, std::size_t floats);
  // Zero where nothing was sent. Failure for bytes that make no sense.
  void read(std::span<const std::byte> bytes, std::span<float> out);
  std::vector<StateSpan> state();

 private:
  FilterSettings settings_;
  std::vector<std::uint32_t> cached_;  // as in PushFilter
};

}  // namespace echelon::exchanges
