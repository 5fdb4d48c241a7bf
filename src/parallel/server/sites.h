#pragma once
// Sites with servers of their own (Gaia): only significant changes of weights travel between them. A change is
// significant if it is larger than a threshold relative to its weight; the threshold shrinks with the square root of
// time. What is not significant yet is added up until it is, so nothing is lost.

#include <cstdint>
#include <span>
#include <vector>

#include "parallel/rule.h"

namespace echelon::exchanges {

// The site of every rank: its host (0 sites), or one of `sites` equal runs of ranks. Numbered from 0 without gaps.
std::vector<int> sites_of(int sites, const std::vector<int>& hosts);

// The ranks in other sites that have the same place there: of a server, those with the same keys. None for places that
// the smallest site has not.
std::vector<Rank> counterparts(const std::vector<int>& sites, Rank rank);
std::vector<Rank> ranks_of_site(const std::vector<int>& sites, int site);
int smallest_site(const std::vector<int>& sites);

class SignificantChanges {
 public:
  SignificantChanges(double threshold, std::size_t floats);

  static double threshold_at(double threshold, std::int64_t time);  // time counts from 1

  void before_update(std::span<const float> weights);
  void after_update(std::span<const float> weights);
  // Those that have become significant, in the form of `apply`; they are taken off what is kept. Empty if there is
  // none.
  std::span<const std::byte> take(std::span<const float> weights, std::int64_t time);
  // Adds what came from another site. Failure for bytes that make no sense.
  static void apply(std::span<const std::byte> bytes, std::span<float> weights);

  std::span<const float> kept() const { return kept_.as<float>(); }
  std::vector<StateSpan> state();

 private:
  double threshold_;
  Buffer before_, kept_;
  std::vector<std::byte> bytes_;
};

}  // namespace echelon::exchanges
