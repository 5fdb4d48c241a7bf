#include "tests/support/source_path.h"

namespace echelon {

std::string source_path(const std::string& path) { return ECHELON_SOURCE_DIR "/" + path; }

}  // namespace echelon
