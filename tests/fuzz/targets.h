#pragma once
// The fuzz targets of the ordinary build, by name. A target is a function fuzz_NAME in tests/fuzz/NAME_fuzz.cpp that
// takes any bytes and returns 0; CMake writes the list from the names of the files.

#include <cstddef>
#include <cstdint>
#include <span>

namespace echelon::test {

struct FuzzTarget {
  const char* name;
  int (*run)(const std::uint8_t* data, std::size_t size);
};

std::span<const FuzzTarget> fuzz_targets();

}  // namespace echelon::test
