// The entropy coder of qsgd beside zstd, on the same levels of normally distributed numbers: bytes, and GB/s of float32
// that one core encodes and decodes, quantising included.
//     bench_entropy [NUMBERS]
// zstd is given what suits it best: the packed levels of the message, and the same with a byte for each level.

#include <fmt/format.h>
#include <zstd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/options.h"
#include "bench/peak.h"
#include "codec/codec.h"
#include "recipe/toml.h"

namespace {

using namespace echelon;

struct Levels {
  std::unique_ptr<Codec> codec;
  std::vector<std::byte> bytes;
  std::size_t written = 0;
};

Levels make_codec(const char* lines, const std::vector<CodecPiece>& pieces) {
  Options options = parse_toml(lines, "settings");
  options.where = "codec";
  Problems problems;
  OptionReader reader(options, problems);
  const CodecMaker maker = read_codec(reader);
  problems.throw_if_any("settings");
  Levels made{.codec = maker(pieces)};
  made.bytes.resize(made.codec->most_bytes());
  return made;
}

void print(const std::string& name, std::size_t bytes, double floats, double encode, double decode) {
  fmt::print("{:<28} {:6.2f} %   encode {:5.2f} GB/s   decode {:5.2f} GB/s\n", name,
             100 * static_cast<double>(bytes) / floats, floats / encode * 1e-9, floats / decode * 1e-9);
  std::fflush(stdout);
}

void with_zstd(const char* name, int level, const std::vector<std::byte>& raw, double floats, double quantise,
               double restore) {
  std::vector<std::byte> packed(ZSTD_compressBound(raw.size())), back(raw.size());
  ZSTD_CCtx* const compressor = ZSTD_createCCtx();
  ZSTD_DCtx* const decompressor = ZSTD_createDCtx();
  std::size_t size = 0;
  const double encode = bench::best_seconds(
      [&] { size = ZSTD_compressCCtx(compressor, packed.data(), packed.size(), raw.data(), raw.size(), level); });
  const double decode =
      bench::best_seconds([&] { ZSTD_decompressDCtx(decompressor, back.data(), back.size(), packed.data(), size); });
  ZSTD_freeCCtx(compressor), ZSTD_freeDCtx(decompressor);
  if (back != raw) fmt::print("{}: it did not come back\n", name);
  print(fmt::format("qsgd, then zstd {} {}", level, name), size, floats, quantise + encode, restore + decode);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t numbers = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'900'000) / 1024 * 1024;
  const std::vector<CodecPiece> pieces{{.size = numbers, .rows = numbers / 1024}};
  std::vector<float> values(numbers), out(numbers);
  const Stream random({.seed = 1});
  for (std::size_t i = 0; i < numbers; ++i) values[i] = random.normal(i) * 0.01f;
  const auto floats = static_cast<double>(numbers * sizeof(float));
  double quantise = 0, restore = 0;
  std::vector<std::byte> plain;
  for (const char* settings : {"name='qsgd'", "name='qsgd'\nentropy=true"}) {
    Levels l = make_codec(settings, pieces);
    std::uint32_t step = 0;
    const double encode = bench::best_seconds([&] {
      l.written =
          l.codec->encode(values, {.number = step, .epoch = 1, .random = Stream({.seed = 2, .step = step})}, l.bytes);
    });
    const double decode = bench::best_seconds([&] { l.codec->decode(std::span(l.bytes).first(l.written), out); });
    print(plain.empty() ? "qsgd" : "qsgd, entropy = true", l.written, floats, encode, decode);
    if (plain.empty())
      quantise = encode, restore = decode,
      plain.assign(l.bytes.begin(), l.bytes.begin() + static_cast<std::ptrdiff_t>(l.written));
  }
  std::vector<std::byte> apart;  // a byte for each level of four bits
  for (const std::byte b : plain) apart.push_back(b & std::byte{15}), apart.push_back(b >> 4);
  for (const int level : {-5, 1, 3}) {
    with_zstd("of packed levels", level, plain, floats, quantise, restore);
    with_zstd("of bytes", level, apart, floats, quantise, restore);
  }
}
