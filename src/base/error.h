#pragma once
// Failures come in two kinds. `BadInput` is something the user can cure (a misspelt key, a truncated file, shapes that
// do not fit): the program prints the text and exits with 2 before it has changed anything. `Failure` is everything
// else that can go wrong at run time (a full disk, a lost peer): exit code 1. A broken invariant of our own is neither:
// `invariant` ends the program, because no caller could do anything sensible about it.

#include <fmt/format.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace echelon {

class Error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class BadInput : public Error {
  using Error::Error;
};

class Failure : public Error {
  using Error::Error;
};

template <typename... Args>
[[noreturn]] void bad_input(fmt::format_string<Args...> text, Args&&... args) {
  throw BadInput(fmt::format(text, std::forward<Args>(args)...));
}

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw Failure(fmt::format(text, std::forward<Args>(args)...));
}

// Ends the program with a message when `holds` is false: a bug in Echelon, never the user's doing.
void invariant(bool holds, std::string_view what, std::source_location where = std::source_location::current());

}  // namespace echelon
