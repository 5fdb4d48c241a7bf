#include "data/class_counter.h"

#include <algorithm>

#include "base/error.h"

namespace echelon::data {

void ClassCounter::add(std::int64_t label, std::uint64_t row) {
  invariant(label >= 0, "a class is not negative");
  if (records_.empty() || label > records_.back().label) {
    // Only the last few matter; a set whose labels rise all the time would have a million.
    if (records_.size() == 4096) records_.erase(records_.begin(), records_.begin() + 2048);
    records_.push_back({label, row});
  }
  if (label >= near) {
    far_least_ = far_ ? std::min(far_least_, label) : label;
    far_ = true;
    return;
  }
  const auto place = static_cast<std::size_t>(label);
  if (place >= seen_.size()) seen_.resize(std::min<std::size_t>(near, std::max(place + 1, 2 * seen_.size())));
  if (!seen_[place]) ++distinct_;
  seen_[place] = true;
}

ClassCounter::Gap ClassCounter::widest_gap() const {
  Gap widest;
  std::int64_t last = -1;
  const auto look = [&](std::int64_t label) {
    if (label - last > widest.behind - widest.before) widest = {last, label};
    last = label;
  };
  for (std::size_t i = 0; i < seen_.size(); ++i)
    if (seen_[i]) look(static_cast<std::int64_t>(i));
  if (far_) look(far_least_);
  return widest;
}

std::int64_t ClassCounter::classes(const std::string& file) const {
  if (records_.empty()) return 0;
  const std::int64_t count = records_.back().label + 1, distinct = distinct_ + (far_ ? 1 : 0);
  const std::int64_t empty = count - distinct;
  const std::int64_t plausible =
      what_ == Of::samples ? std::max<std::int64_t>(16, distinct) : std::max<std::int64_t>(1 << 16, 64 * distinct);
  if (empty <= plausible) return count;
  const Gap gap = widest_gap();
  const char* const word = what_ == Of::samples ? "labels" : "tokens";
  if (gap.before < 0)
    bad_input("{}: {} from {} to {}, of which {} are there: set classes = {} if that is meant", file, word, gap.behind,
              count - 1, distinct, count);
  std::int64_t least = gap.before;
  while (least > 0 && seen_[static_cast<std::size_t>(least - 1)]) --least;
  const auto first = std::ranges::find_if(records_, [&](const Record& r) { return r.label >= gap.behind; });
  const std::string others = least == gap.before ? std::to_string(least) : fmt::format("{}-{}", least, gap.before);
  const bool one = gap.behind == count - 1;
  bad_input("{}: {} {} and {} {}, in row {} (counted from 0): set classes = {} if that is meant", file, word, others,
            one ? "one" : "some up to", count - 1, first->row, count);
}

}  // namespace echelon::data
