// How fast every codec encodes and decodes, beside a plain copy of the same floats on the same core, and in how many
// bytes:
//     bench_codec [NUMBERS] [settings: lines of a [codec] table, separated by commas]
// Normally distributed numbers in the shapes of an MLP of 1.9 million weights unless said otherwise. `add` is what a
// receiver does that sums.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/options.h"
#include "bench/peak.h"
#include "codec/codec.h"
#include "recipe/toml.h"

namespace {

using namespace echelon;

const char* const all[] = {
    "name='none'",
    "name='fp16'",
    "name='bf16'",
    "name='fixed16'",
    "name='flexpoint'",
    "name='dorefa'",
    "name='dorefa',bits=2",
    "name='one_bit',error_feedback=false",
    "name='one_bit'",
    "name='two_bit',layer_scale='none',error_feedback=false",
    "name='two_bit'",
    "name='terngrad'",
    "name='qsgd'",
    "name='qsgd',entropy=true",
    "name='top_k',error_feedback=false",
    "name='top_k'",
    "name='top_k',share=0.001",
    "name='strom',layer_scale='none',error_feedback=false,threshold=0.03",
    "name='strom'",
    "name='adaptive',layer_scale='none',error_feedback=false",
    "name='adaptive'",
    "name='dgc'",
    "name='random_k'",
    "name='low_rank'",
};

std::vector<CodecPiece> pieces_of(std::size_t numbers) {
  std::vector<CodecPiece> pieces{{.size = 784 * 1024, .rows = 1024},  {.size = 1024},
                                 {.size = 1024 * 1024, .rows = 1024}, {.size = 1024},
                                 {.size = 10240, .rows = 10},         {.size = 10}};
  if (numbers > 0) pieces = {{.size = numbers / 1024 * 1024, .rows = 1024}};
  return pieces;
}

void measure(const std::string& settings, std::size_t numbers) {
  std::string lines = settings;
  for (char& c : lines)
    if (c == ',') c = '\n';
  Options options = parse_toml(lines, "settings");
  options.where = "codec";
  Problems problems;
  OptionReader reader(options, problems);
  const CodecMaker maker = read_codec(reader);
  problems.throw_if_any("settings");

  const auto pieces = pieces_of(numbers);
  std::vector<float> values, out;
  const Stream random({.seed = 1});
  for (const CodecPiece& piece : pieces)
    for (std::size_t i = 0; i < piece.size; ++i) values.push_back(random.normal(values.size()) * 0.01f);
  out.resize(values.size());
  const auto codec = maker(pieces);
  std::vector<std::byte> bytes(codec->most_bytes());
  std::size_t written = 0;
  std::uint32_t step = 0;
  const double copy = bench::best_seconds([&] {
    std::memcpy(out.data(), values.data(), values.size() * sizeof(float));
    __asm__ volatile("" ::"r"(out.data()) : "memory");
  });
  const double encode = bench::best_seconds([&] {
    written = codec->encode(values, {.number = step, .epoch = 100, .random = Stream({.seed = 2, .step = step})}, bytes);
    ++step;
  });
  const auto message = std::span(bytes).first(written);
  const double decode = bench::best_seconds([&] { codec->decode(message, out); });
  const double add = bench::best_seconds([&] { codec->add(message, 0.5f, out); });
  const double size = static_cast<double>(values.size() * sizeof(float));
  fmt::print(
      "{:<66} {:6.2f} %  copy {:5.1f} GB/s  encode {:5.1f} ({:3.0f} %)  decode {:5.1f} ({:3.0f} %)  add {:5.1f} "
      "({:3.0f} %)\n",
      settings, 100 * static_cast<double>(written) / size, size / copy * 1e-9, size / encode * 1e-9,
      100 * copy / encode, size / decode * 1e-9, 100 * copy / decode, size / add * 1e-9, 100 * copy / add);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t numbers = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (argc > 2) return measure(argv[2], numbers), 0;
  for (const char* settings : all) measure(settings, numbers);
}
