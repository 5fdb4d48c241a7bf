#include "cli/complaints.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace echelon::cli {

void Complaints::add(const std::string& text) {
  for (const std::string_view line : split(text, '\n'))
    if (std::ranges::find(lines_, line) == lines_.end()) lines_.emplace_back(line);
}

void Complaints::throw_if_any() const {
  if (!lines_.empty()) throw BadInput(fmt::format("{}", fmt::join(lines_, "\n")));
}

}  // namespace echelon::cli
