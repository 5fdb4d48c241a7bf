#include "parallel/step/buckets.h"

#include <algorithm>

namespace echelon {

namespace {

double ready(const Bucket& bucket, const std::vector<ReadyPiece>& pieces) {
  double latest = 0;
  for (const ReadyPiece& p : pieces)
    if (p.begin >= bucket.begin && p.end <= bucket.end) latest = std::max(latest, p.seconds);
  return latest;
}

}  // namespace

std::vector<double> finish_times(const std::vector<Bucket>& buckets, const std::vector<ReadyPiece>& pieces,
                                 const std::function<double(std::size_t)>& cost) {
  std::vector<double> times;
  double time = 0;
  for (const Bucket& b : buckets)
    times.push_back(time = std::max(time, ready(b, pieces)) + cost((b.end - b.begin) * sizeof(float)));
  return times;
}

double finish_time(const std::vector<Bucket>& buckets, const std::vector<ReadyPiece>& pieces,
                   const std::function<double(std::size_t)>& cost) {
  return buckets.empty() ? 0 : finish_times(buckets, pieces, cost).back();
}

std::vector<Bucket> fuse_pieces(const std::vector<ReadyPiece>& pieces, std::size_t bytes) {
  std::vector<ReadyPiece> by_place = pieces;
  std::ranges::sort(by_place, {}, &ReadyPiece::begin);
  std::vector<Bucket> buckets;
  for (auto it = by_place.rbegin(); it != by_place.rend(); ++it) {  // the last layers' gradients are there first
    if (buckets.empty() || (buckets.back().end - buckets.back().begin) * sizeof(float) >= bytes)
      buckets.push_back({it->begin, it->end});
    else
      buckets.back().begin = it->begin;
  }
  std::ranges::stable_sort(buckets, {}, [&](const Bucket& b) { return ready(b, pieces); });
  return buckets;
}

std::vector<Bucket> choose_buckets(const std::vector<ReadyPiece>& pieces,
                                   const std::function<double(std::size_t)>& cost) {
  std::size_t all = 0;
  for (const ReadyPiece& p : pieces) all += (p.end - p.begin) * sizeof(float);
  std::vector<Bucket> best = fuse_pieces(pieces, all);  // one for all; then smaller ones as long as they pay
  for (std::size_t bytes = 1; bytes < all; bytes *= 2) {
    auto buckets = fuse_pieces(pieces, bytes);
    if (finish_time(buckets, pieces, cost) < finish_time(best, pieces, cost)) best = std::move(buckets);
  }
  return best;
}

}  // namespace echelon
