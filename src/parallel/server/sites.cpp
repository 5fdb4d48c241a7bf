#include "parallel/server/sites.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "parallel/rules/common.h"

namespace echelon::exchanges {

namespace {
struct Change {
  std::uint32_t at;
  float by;
};
}  // namespace

std::vector<int> sites_of(int sites, const std::vector<int>& hosts) {
  std::vector<int> all;
  std::map<int, int> number;
  const int n = static_cast<int>(hosts.size());
  for (int r = 0; r < n; ++r) {
    const int site = sites > 0 ? r * std::min(sites, n) / n : hosts[static_cast<std::size_t>(r)];
    all.push_back(number.try_emplace(site, static_cast<int>(number.size())).first->second);
  }
  return all;
}

std::vector<Rank> ranks_of_site(const std::vector<int>& sites, int site) {
  std::vector<Rank> ranks;
  for (Rank r = 0; r < static_cast<Rank>(sites.size()); ++r)
    if (sites[static_cast<std::size_t>(r)] == site) ranks.push_back(r);
  return ranks;
}

int smallest_site(const std::vector<int>& sites) {
  std::size_t least = sites.size();
  for (int s = 0; s <= std::ranges::max(sites); ++s) least = std::min(least, ranks_of_site(sites, s).size());
  return static_cast<int>(least);
}

std::vector<Rank> counterparts(const std::vector<int>& sites, Rank rank) {
  const int own = sites[static_cast<std::size_t>(rank)];
  const std::vector<Rank> here = ranks_of_site(sites, own);
  const auto place = static_cast<std::size_t>(std::ranges::find(here, rank) - here.begin());
  std::vector<Rank> others;
  for (int s = 0; s <= std::ranges::max(sites); ++s)
    if (const std::vector<Rank> there = ranks_of_site(sites, s); s != own && place < there.size())
      others.push_back(there[place]);
  return others;
}

SignificantChanges::SignificantChanges(double threshold, std::size_t floats)
    : threshold_(threshold), before_(rules::zeros(floats)), kept_(rules::zeros(floats)) {
  bytes_.reserve(floats * sizeof(Change));
}

double SignificantChanges::threshold_at(double threshold, std::int64_t time) {
  return threshold / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, time)));
}

void SignificantChanges::before_update(std::span<const float> weights) {
  std::ranges::copy(weights, before_.as<float>().begin());
}

void SignificantChanges::after_update(std::span<const float> weights) {
  const std::span<float> kept = kept_.as<float>();
  const std::span<const float> before = before_.as<float>();
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] += weights[i] - before[i];
}

std::span<const std::byte> SignificantChanges::take(std::span<const float> weights, std::int64_t time) {
  const auto threshold = static_cast<float>(threshold_at(threshold_, time));
  const std::span<float> kept = kept_.as<float>();
  bytes_.clear();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i] == 0 || std::abs(kept[i]) <= threshold * std::abs(weights[i])) continue;
    const Change change{static_cast<std::uint32_t>(i), kept[i]};
    const auto* raw = reinterpret_cast<const std::byte*>(&change);
    bytes_.insert(bytes_.end(), raw, raw + sizeof change);
    kept[i] = 0;
  }
  return bytes_;
}

void SignificantChanges::apply(std::span<const std::byte> bytes, std::span<float> weights) {
  if (bytes.size() % sizeof(Change) != 0) fail("changes from another site end within one");
  for (; !bytes.empty(); bytes = bytes.subspan(sizeof(Change))) {
    Change change;
    std::memcpy(&change, bytes.data(), sizeof change);
    if (change.at >= weights.size()) fail("another site changed number {} of {}", change.at, weights.size());
    weights[change.at] += change.by;
  }
}

std::vector<StateSpan> SignificantChanges::state() { return {as_state("kept", kept_)}; }

}  // namespace echelon::exchanges
