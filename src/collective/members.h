#pragma once
// The ranks of a group in order. A group of all ranks stores no list: a simulation has thousands of such groups.

#include <algorithm>
#include <vector>

#include "world/world.h"

namespace echelon {

class Members {
 public:
  explicit Members(int everyone) : size_(everyone) {}
  explicit Members(std::vector<Rank> list) : size_(static_cast<int>(list.size())), list_(std::move(list)) {}

  int size() const { return size_; }
  Rank operator[](int member) const { return list_.empty() ? member : list_[static_cast<std::size_t>(member)]; }
  int find(Rank rank) const {  // -1: no member
    if (list_.empty()) return rank < size_ ? rank : -1;
    const auto it = std::ranges::find(list_, rank);
    return it == list_.end() ? -1 : static_cast<int>(it - list_.begin());
  }
  bool contains_all(const Members& others) const {
    for (int i = 0; i < others.size(); ++i)
      if (find(others[i]) < 0) return false;
    return true;
  }

 private:
  int size_;
  std::vector<Rank> list_;
};

}  // namespace echelon
