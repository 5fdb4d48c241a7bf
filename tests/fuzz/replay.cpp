// fuzz_replay TARGET FOLDER: the fuzz targets where libFuzzer is absent. Runs a target on every file of the folder, on
// every prefix of the smaller ones (a truncated file is the commonest broken file), and on some thousand inputs made
// from them by small changes: the same ones every time.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "tests/fuzz/targets.h"

namespace {

using Input = std::vector<std::uint8_t>;

// One to four small changes: a bit, a byte, a piece removed, doubled or taken from another input.
Input changed(Input bytes, const Input& other, const echelon::Stream& stream) {
  std::uint64_t drawn = 0;
  const auto below = [&](std::size_t n) { return stream.below(static_cast<std::uint32_t>(n), drawn++); };
  const auto at = [](const Input& b, std::size_t i) { return b.begin() + static_cast<std::ptrdiff_t>(i); };
  for (auto changes = 1 + below(4); changes > 0; --changes) {
    if (bytes.empty()) return other;
    const std::size_t i = below(bytes.size()), n = 1 + below(std::min<std::size_t>(bytes.size() - i, 16));
    const Input piece(at(bytes, i), at(bytes, i + n));
    constexpr std::uint8_t telling[] = {0, 1, 0x7f, 0x80, 0xff, '0', '9', '-', '"', '{', '[', '\n'};
    switch (below(6)) {
      case 0: bytes[i] ^= static_cast<std::uint8_t>(1u << below(8)); break;
      case 1: bytes[i] = telling[below(std::size(telling))]; break;
      case 2: bytes[i] = static_cast<std::uint8_t>(below(256)); break;
      case 3: bytes.erase(at(bytes, i), at(bytes, i + n)); break;
      case 4: bytes.insert(at(bytes, i), piece.begin(), piece.end()); break;
      case 5:
        if (!other.empty()) bytes.insert(at(bytes, i), at(other, below(other.size())), other.end());
        break;
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::size_t small = 4096;
  constexpr std::uint32_t variations = 3'000;
  if (argc != 3) return std::puts("usage: fuzz_replay TARGET FOLDER"), 2;
  const auto targets = echelon::test::fuzz_targets();
  const auto target =
      std::ranges::find(targets, std::string_view(argv[1]), [](const auto& t) { return std::string_view(t.name); });
  if (target == targets.end()) return std::printf("there is no fuzz target %s\n", argv[1]), 2;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[2]))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);  // the order in which a folder is listed is nobody's
  if (files.empty()) return std::puts("no inputs to begin with"), 1;

  std::vector<Input> inputs;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    const Input bytes{std::istreambuf_iterator<char>(in), {}};
    for (std::size_t n = bytes.size() > small ? bytes.size() : 0; n <= bytes.size(); ++n) {
      // A copy of exactly that size, so that AddressSanitizer sees the first byte too many.
      const Input input(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
      target->run(input.data(), input.size());
    }
    inputs.push_back(bytes);
  }
  const auto count = static_cast<std::uint32_t>(inputs.size());
  for (std::uint32_t i = 0; i < variations; ++i) {
    const echelon::Stream stream({.seed = 1, .step = i});
    Input input = changed(inputs[i % count], inputs[stream.below(count, 1'000'000)], stream);
    if (input.size() > (1u << 16)) input.resize(1u << 16);
    input.shrink_to_fit();
    target->run(input.data(), input.size());
  }
  std::printf("replayed %u files and %u variations\n", count, variations);
  return 0;
}
