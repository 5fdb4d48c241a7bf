// The main of a fuzz program where libFuzzer is absent: runs the target on every file of the folders that it is given,
// and on every prefix of the smaller ones (a truncated file is the commonest broken file).

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  constexpr std::size_t small = 4096;
  int files = 0;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
      for (std::size_t n = bytes.size() > small ? bytes.size() : 0; n <= bytes.size(); ++n) {
        // A copy of exactly that size, so that AddressSanitizer sees the first byte too many.
        const std::vector<std::uint8_t> input(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
        LLVMFuzzerTestOneInput(input.data(), input.size());
      }
      ++files;
    }
  std::printf("replayed %d files\n", files);
  return files > 0 ? 0 : 1;
}
