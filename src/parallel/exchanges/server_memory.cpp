// What a server remembers of its workers' speeds, and what of all that it knows is saved.

#include <algorithm>

#include "parallel/exchanges/server_shard.h"

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
    auto add = [&](const std::string& name, std::span<std::byte> bytes) {
      all.push_back({fmt::format("server {} {}", first_ + i, name), bytes});
    };
    for (const StateSpan& state : s.shared->state()) add(state.name, state.bytes);
    if (s.answer_codec)
      for (const Codec::State& state : s.answer_codec->state()) add("answers " + state.name, state.bytes);
    add("round", std::as_writable_bytes(std::span(&s.round, 1)));
    add("version", std::as_writable_bytes(std::span(&s.version, 1)));
    add("clocks", std::as_writable_bytes(std::span(s.clocks)));
    for (std::size_t w = 0; w < s.filters.size(); ++w)
      for (const StateSpan& state : s.filters[w].state()) add(fmt::format("filter {} {}", w, state.name), state.bytes);
    if (s.changes)
      for (const StateSpan& state : s.changes->state()) add("sites " + state.name, state.bytes);
    for (std::size_t w = 0; w < s.read.size(); ++w) add(fmt::format("read by {}", w), s.read[w].as<std::byte>());
  }
  all.push_back({"site clocks", std::as_writable_bytes(std::span(site_clocks_))});
  all.push_back({"site clock told", std::as_writable_bytes(std::span(&told_clock_, 1))});
  all.push_back({"lost members", std::as_writable_bytes(std::span(&lost_, 1))});
  all.push_back({"server speeds", std::as_writable_bytes(std::span(interval_))});
  all.push_back({"server counts", std::as_writable_bytes(std::span(&counts_, 1))});
  return all;
}

}  // namespace echelon::exchanges
