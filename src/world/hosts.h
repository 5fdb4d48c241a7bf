#pragma once
// The machine of each rank of a world. A copy shares the list with its original, so that thousands of simulated ranks
// have one list. Immutable; all threads may read it.

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace echelon {

class Hosts {
 public:
  Hosts() : Hosts(std::vector<int>()) {}
  Hosts(std::vector<int> of_ranks) : list_(std::make_shared<const std::vector<int>>(std::move(of_ranks))) {}
  Hosts(std::initializer_list<int> of_ranks) : Hosts(std::vector<int>(of_ranks)) {}

  operator const std::vector<int>&() const { return *list_; }
  const int* begin() const { return list_->data(); }
  const int* end() const { return begin() + size(); }
  bool empty() const { return list_->empty(); }
  std::size_t size() const { return list_->size(); }
  int operator[](std::size_t rank) const { return (*list_)[rank]; }

 private:
  std::shared_ptr<const std::vector<int>> list_;
};

}  // namespace echelon
