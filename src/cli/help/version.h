#pragma once

namespace echelon::cli {

inline constexpr const char* version = "echelon 0.1.0";

}  // namespace echelon::cli
