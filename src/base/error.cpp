#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace echelon {

void invariant(bool holds, std::string_view what, std::source_location where) {
  if (holds) return;
  std::fprintf(stderr, "echelon: internal error: %.*s (%s:%u). Please report this.\n", static_cast<int>(what.size()),
               what.data(), where.file_name(), static_cast<unsigned>(where.line()));
  std::abort();
}

}  // namespace echelon
