#pragma once
// A list of words for a message that has to stay readable however many there are.

#include <span>
#include <string>

namespace echelon {

// The first of them with commas in between, and how many more there are: "a, b, c and 997 more". Long words are cut.
std::string listed(std::span<const std::string> words, std::size_t most = 20);

}  // namespace echelon
