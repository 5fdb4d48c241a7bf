#pragma once
// What a worker's own copy of the parameters has seen, key by key: the answers that it was made from, and how many of
// the worker's own pushes are in them. Used by the worker's thread, or by the task that exchanges messages for it.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/state.h"

namespace echelon::exchanges {

class ParameterCopy {
 public:
  explicit ParameterCopy(std::size_t keys) : seen_(keys), version_(keys), own_in_(keys) {}

  std::int64_t pushes() const { return pushes_; }  // times that this worker has pushed something
  void count_push() { ++pushes_; }

  std::int64_t round() const { return round_; }  // to which the next contribution belongs
  void reach_round(std::int64_t round) { round_ = std::max(round_, round); }

  // Every worker's first so many steps are in all keys.
  std::int64_t seen() const { return std::ranges::min(seen_); }
  std::int64_t seen(std::size_t key) const { return seen_[key]; }
  std::size_t oldest_key() const { return static_cast<std::size_t>(std::ranges::min_element(seen_) - seen_.begin()); }

  // The key was read at that version of the server's, with so many of the worker's own pushes in it.
  void read(std::size_t key, std::int64_t version, std::int64_t own) { version_[key] = version, own_in_[key] = own; }
  void has_seen(std::size_t key, std::int64_t steps) { seen_[key] = steps; }
  // The version that the copy of a key is like, if the worker has taken its own steps since it was read.
  std::int64_t version(std::size_t key) const { return version_[key]; }
  std::int64_t version_with_own(std::size_t key) const { return version_[key] + pushes_ - own_in_[key]; }

  std::vector<StateSpan> state() {
    return {as_state("seen", seen_), as_state("version", version_), as_state("own in", own_in_),
            as_state("pushes", pushes_), as_state("round", round_)};
  }

 private:
  std::vector<std::int64_t> seen_, version_, own_in_;
  std::int64_t pushes_ = 0, round_ = 0;
};

}  // namespace echelon::exchanges
