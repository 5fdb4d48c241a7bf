#pragma once
// What is wrong with several things that are checked one after the other, each line once: a bad setting of a recipe is
// found again with every system and every value that it is tried with.

#include <string>
#include <vector>

namespace echelon::cli {

class Complaints {
 public:
  void add(const std::string& text);  // every line of it
  void throw_if_any() const;          // BadInput

 private:
  std::vector<std::string> lines_;
};

}  // namespace echelon::cli
