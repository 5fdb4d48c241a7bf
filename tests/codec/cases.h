#pragma once
// Every codec with the settings that tests and the fuzzer run it with, and the runs of numbers they are run on.

#include <cmath>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/random.h"
#include "codec/codec.h"
#include "recipe/toml.h"

namespace echelon::test {

inline const std::vector<std::string>& codec_cases() {
  static const std::vector<std::string> cases = {
      "name = 'none'",
      "name = 'none'\nentropy = true",
      "name = 'fp16'",
      "name = 'fp16'\nlayer_scale = 'every_call'",
      "name = 'fp16'\nlayer_scale = 'first_call'",
      "name = 'bf16'",
      "name = 'bf16'\nerror_feedback = true",
      "name = 'fixed16'",
      "name = 'flexpoint'",
      "name = 'flexpoint'\nbucket = 100\nerror_feedback = true",
      "name = 'dorefa'",
      "name = 'dorefa'\nbits = 1",
      "name = 'dorefa'\nbits = 3\nbucket = 1000\nerror_feedback = true",
      "name = 'dorefa'\nbits = 8\nlayer_scale = 'every_call'\nentropy = true",
      "name = 'one_bit'",
      "name = 'one_bit'\nper = 'piece'",
      "name = 'one_bit'\nerror_feedback = false",
      "name = 'two_bit'",
      "name = 'two_bit'\nthreshold = 0.05\nlayer_scale = 'none'\nentropy = true",
      "name = 'terngrad'",
      "name = 'terngrad'\nclip_sigmas = 0\nbucket = 64",
      "name = 'terngrad'\nentropy = true\nerror_feedback = true",
      "name = 'qsgd'\nentropy = true",
      "name = 'qsgd'\nlevels = 127\nnorm = 'max'",
      "name = 'qsgd'\nlevels = 7\nbucket = 64\nnorm = 'max'\nerror_feedback = true",
      "name = 'strom'",
      "name = 'strom'\nthreshold = 0.02\nlayer_scale = 'none'",
      "name = 'strom'\nthreshold = 2\nentropy = true\nmomentum = 0.5",
      "name = 'top_k'",
      "name = 'top_k'\nshare = 0.1\nlayerwise = true\nvalues = 'fp16'",
      "name = 'top_k'\nshare = 0.001\nwarmup_epochs = 4\nerror_feedback = false",
      "name = 'top_k'\nlayer_scale = 'every_call'\nentropy = true",
      "name = 'adaptive'",
      "name = 'adaptive'\nshare = 0.1\nlayer_scale = 'none'",
      "name = 'dgc'",
      "name = 'dgc'\nmasking = false\nclip = 0.5\nvalues = 'fp16'",
      "name = 'random_k'",
      "name = 'random_k'\nshare = 0.1\nerror_feedback = true",
      "name = 'low_rank'",
      "name = 'low_rank'\nrank = 1\nwarm_start = false",
  };
  return cases;
}

inline CodecMaker codec_maker(const std::string& settings) {
  Options options = parse_toml(settings, "test");
  options.where = "codec";
  Problems problems;
  OptionReader reader(options, problems);
  CodecMaker maker = read_codec(reader);
  problems.throw_if_any("test");
  return maker;
}

// Matrices and vectors of odd sizes, some larger than a block of the sparse format, some of one number.
inline std::vector<CodecPiece> odd_pieces() {
  return {{.size = 37 * 1009, .rows = 37}, {.size = 37}, {.size = 1}, {.size = 0},
          {.size = 130 * 17, .rows = 17},  {.size = 5}};
}
inline std::vector<CodecPiece> few_pieces() { return {{.size = 12 * 11, .rows = 12}, {.size = 11}, {.size = 1}}; }

inline std::size_t total(const std::vector<CodecPiece>& pieces) {
  std::size_t n = 0;
  for (const CodecPiece& piece : pieces) n += piece.size;
  return n;
}

inline Stream random_of(std::uint32_t step, std::uint32_t sender = 0) {
  return Stream({.seed = 7, .step = step, .shard = sender, .layer = stream_layer("codec test")});
}

inline CodecStep step_of(int number, double epoch = 100) {
  return {.number = number, .epoch = epoch, .random = random_of(static_cast<std::uint32_t>(number))};
}

// Numbers like those of a gradient: most of them small, a few large, each piece on a scale of its own, some zero.
inline std::vector<float> gradient(const std::vector<CodecPiece>& pieces, std::uint32_t seed) {
  const Stream random({.seed = seed, .step = 0, .shard = 0, .layer = stream_layer("gradient")});
  std::vector<float> out;
  float scale = 0.01f;
  for (const CodecPiece& piece : pieces) {
    for (std::size_t i = 0; i < piece.size; ++i) {
      const float x = random.normal(out.size()) * scale;
      out.push_back(random.below(50, out.size() + 100000000) == 0 ? 0.0f : x * std::abs(x) / scale);
    }
    scale *= 3;
  }
  return out;
}

}  // namespace echelon::test
