#include "collective/shared_reducer.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "kernels/vector.h"

namespace echelon {

namespace {

// Sums of shards that were taken over which are kept at the same time: one for each core that runs such a shard, and
// one for each level of the tree over the shards at the end of a range, which are taken one after the other.
int spare_places(const std::vector<ShardRange>& dealt) {
  int cores = 0, longest = 0;
  for (const ShardRange& r : dealt) cores += r.count() > 0, longest = std::max(longest, r.count());
  if (cores < 2 || longest < 2) return 0;
  return cores - 1 + std::bit_width(static_cast<unsigned>(longest)) - 2;
}

}  // namespace

SharedReducer::SharedReducer(int shards, std::vector<ShardRange> dealt, std::vector<ShardReducer*> reducers,
                             std::size_t floats)
    : shards_(shards), reducers_(std::move(reducers)) {
  for (std::size_t c = 0; c < reducers_.size(); ++c) {
    if (!reducers_[c]) continue;
    for (const PartialSum& p : reducers_[c]->partial_sums()) {
      finals_.push_back({p.first, p.last});
      final_places_.push_back(static_cast<int>(places_.size()));
      places_.push_back({.memory = {const_cast<float*>(p.data), floats}, .core = static_cast<int>(c), .final = true});
    }
    for (const std::span<float> inner : reducers_[c]->inner_places())
      places_.push_back({.memory = inner, .core = static_cast<int>(c)});
  }
  const auto spare = static_cast<std::size_t>(spare_places(dealt));
  const std::size_t stride = aligned(floats * sizeof(float)) / sizeof(float);
  spare_ = Buffer(spare * stride * sizeof(float));
  for (std::size_t i = 0; i < spare; ++i) places_.push_back({.memory = spare_.as<float>().subspan(i * stride, floats)});
  sums_.reserve(places_.size());
}

int SharedReducer::reserve_place(int core) {
  // A single shard's contribution is its sum.
  const ShardReducer* own = reducers_[static_cast<std::size_t>(core)];
  if (!own || own->partial_sums().front().data == own->contribution().data()) return -1;
  int found = -1;
  mutex_.take([&] {
    const auto it = std::ranges::find_if(places_, [](const Place& p) { return p.core < 0 && !p.used; });
    if (it == places_.end()) return;
    it->used = true;
    found = static_cast<int>(it - places_.begin());
  });
  return found;
}

void SharedReducer::release_place(int place) {
  mutex_.take([&] { free_place(place); });
}

void SharedReducer::free_place(int place) {
  if (place >= 0) places_[static_cast<std::size_t>(place)].used = false;
}

void SharedReducer::start_step() {
  sums_.clear();
  for (Place& p : places_) p.used = false;
}

bool SharedReducer::is_final(const Sum& sum) const {
  return std::ranges::any_of(finals_, [&](ShardRange f) { return f.first == sum.first && f.last == sum.last; });
}

bool SharedReducer::claim_sibling(const Sum& sum, Sum& sibling) {
  if (is_final(sum)) return false;
  const auto it = std::ranges::find_if(sums_, [&](const Sum& other) {
    return (other.last == sum.first && is_tree_node(0, shards_, other.first, sum.last)) ||
           (sum.last == other.first && is_tree_node(0, shards_, sum.first, other.last));
  });
  if (it == sums_.end()) return false;
  sibling = *it;
  sums_.erase(it);
  return true;
}

// For a shard that completes nothing. A sum that stays to the end is kept where it ends, from its leftmost shard on.
int SharedReducer::place_for(int core, int shard, int reserved) {
  const auto final = std::ranges::find(finals_, shard, &ShardRange::first);
  if (final != finals_.end()) return final_places_[static_cast<std::size_t>(final - finals_.begin())];
  if (reserved >= 0) return reserved;
  const auto it = std::ranges::find_if(places_, [&](const Place& p) { return p.core == core && !p.final && !p.used; });
  invariant(it != places_.end(), "a core that runs its shards in order has a place for each level of the tree");
  it->used = true;
  return static_cast<int>(it - places_.begin());
}

// Outside of the lock: nobody else knows of the two any more.
SharedReducer::Sum SharedReducer::join(const Sum& a, const Sum& b) {
  const Sum &left = a.first < b.first ? a : b, &right = a.first < b.first ? b : a;
  const auto final = std::ranges::find(finals_, left.first, &ShardRange::first);
  const auto is_spare = [&](int place) { return place < 0 || places_[static_cast<std::size_t>(place)].core < 0; };
  const int into = final != finals_.end() ? final_places_[static_cast<std::size_t>(final - finals_.begin())]
                   : is_spare(left.place) && right.place >= 0 ? right.place
                                                              : left.place;
  const std::span<float> memory = places_[static_cast<std::size_t>(into)].memory;
  kernels::add(memory.data(), left.data, right.data, memory.size());
  return {left.first, right.last, into, memory.data()};
}

void SharedReducer::fold(int core, int shard, int reserved) {
  const std::span<float> contribution = reducers_[static_cast<std::size_t>(core)]->contribution();
  Sum sum{shard, shard + 1, -1, contribution.data()}, sibling{};
  for (;;) {
    bool found = false, done = false;
    int place = -1;
    mutex_.take([&] {
      found = claim_sibling(sum, sibling);
      if (found) return;
      if (sum.place < 0) {
        place = place_for(core, shard, reserved);
      } else {
        done = true;
        if (!is_final(sum)) sums_.push_back(sum);
        if (sum.place != reserved) free_place(reserved);
      }
    });
    if (done) return;
    if (!found) {  // copied outside of the lock; then it looks again
      const std::span<float> memory = places_[static_cast<std::size_t>(place)].memory;
      if (memory.data() != sum.data) kernels::copy(memory.data(), sum.data, memory.size());
      sum.place = place, sum.data = memory.data();
      continue;
    }
    const Sum joined = join(sum, sibling);
    mutex_.take([&] {
      for (const int p : {sum.place, sibling.place})
        if (p != joined.place && p != reserved) free_place(p);
    });
    sum = joined;
  }
}

}  // namespace echelon
