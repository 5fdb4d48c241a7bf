// What a server remembers of its workers' speeds, and what of all that it knows is saved.

#include <algorithm>

#include "parallel/server/shard.h"

namespace echelon::exchanges {

// A worker computes from when it got an answer that it had asked for, or else from its last push, until it pushes.
void ServerShard::measure_speed(Rank worker) {
  const auto w = static_cast<std::size_t>(worker);
  const double now = parts_.world->now();
  if (began_[w] >= 0) {
    const double took = now - began_[w];
    interval_[w] = interval_[w] > 0 ? 0.8 * interval_[w] + 0.2 * took : took;
  }
  began_[w] = now;
}

double ServerShard::speed_of(Rank worker) const {
  double sum = 0;
  int known = 0;
  for (double i : interval_)
    if (i > 0) sum += 1 / i, ++known;
  const double own = interval_[static_cast<std::size_t>(worker)];
  return own > 0 && known > 0 ? 1 / own / (sum / known) : 1;
}

double ServerShard::least_speed() const {
  double least = 1;
  for (const Address& a : writers_) least = std::min(least, speed_of(a.rank));
  return least;
}

void ServerShard::read_model(std::span<float> out) const {
  for (const Slice& s : slices_)
    std::ranges::copy(s.shared->model(), out.begin() + static_cast<std::ptrdiff_t>(s.range.begin));
}

std::vector<StateSpan> ServerShard::state() {
  std::vector<StateSpan> all;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    Slice& s = slices_[i];
    std::vector<StateSpan> own = s.shared->state();
    if (s.answer_codec) add_states(own, "answers ", s.answer_codec->state());
    own.push_back(as_state("round", s.round));
    own.push_back(as_state("version", s.version));
    own.push_back(as_state("clocks", s.clocks));
    for (std::size_t w = 0; w < s.filters.size(); ++w)
      add_states(own, fmt::format("filter {} ", w), s.filters[w].state());
    if (s.changes) add_states(own, "sites ", s.changes->state());
    for (std::size_t w = 0; w < s.read.size(); ++w) own.push_back(as_state(fmt::format("read by {}", w), s.read[w]));
    add_states(all, fmt::format("server {} ", first_ + i), own);
  }
  all.push_back(as_state("site clocks", site_clocks_));
  all.push_back(as_state("site clock told", told_clock_));
  all.push_back(as_state("lost members", lost_));
  all.push_back(as_state("server speeds", interval_));
  all.push_back(as_state("server counts", counts_));
  return all;
}

}  // namespace echelon::exchanges
