#include "cli/help/build_facts.h"

#include <fmt/format.h>

#include "cli/help/version.h"
#include "world/os/machine.h"

namespace echelon::cli {

namespace {

#if defined(__clang__)
constexpr const char* compiler = "clang " __clang_version__;
#else
constexpr const char* compiler = "g++ " __VERSION__;
#endif

#if defined(__SANITIZE_ADDRESS__)
constexpr const char* variant = "AddressSanitizer";
#elif defined(__SANITIZE_THREAD__)
constexpr const char* variant = "ThreadSanitizer";
#elif defined(__OPTIMIZE__)
constexpr const char* variant = "release";
#else
constexpr const char* variant = "debug";
#endif

}  // namespace

std::string build_facts() {
  return fmt::format("{}, {}, {}, for x86-64-v2, AVX2 and AVX-512 chosen at run time", version, compiler, variant);
}

std::string version_text() {
  std::string has;
  for (const auto& [name, there] : cpu_features())
    if (there) has += " " + name;
  return fmt::format("{}\nbuild: {}, {}, for x86-64-v2, AVX2 and AVX-512 chosen at run time\ncpu:  {}", version, compiler, variant,
                     has);
}

}  // namespace echelon::cli
