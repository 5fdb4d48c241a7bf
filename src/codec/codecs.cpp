#include "codec/codecs.h"

#include <array>

#include "base/error.h"

namespace echelon {

namespace {

struct Entry {
  const char* name;
  codecs::ReadMaker read;
  bool error_feedback;  // the default
  const char *about, *paper;
};

// Every codec there is.
constexpr std::array table = {
    Entry{"none", codecs::none, false, "float32, as the numbers are", ""},
    Entry{"fp16", codecs::fp16, false, "IEEE half precision, rounded to the nearest", ""},
    Entry{"bf16", codecs::bf16, false, "bfloat16: the range of float32 with 8 bits of precision", ""},
    Entry{"one_bit", codecs::one_bit, true, "the sign of each number, and the mean on either side of zero",
          "Seide et al. 2014, 1-Bit Stochastic Gradient Descent"},
    Entry{"top_k", codecs::top_k, true, "the largest numbers only, a given share of them",
          "Aji, Heafield 2017, Sparse Communication for Distributed Gradient Descent"},
};

}  // namespace

CodecMaker read_codec(OptionReader& options) {
  std::vector<std::string> names;
  for (const Entry& entry : table) names.emplace_back(entry.name);
  const std::string name = options.choice("name", "none", names);
  const Entry* entry = table.begin();
  for (const Entry& each : table)
    if (name == each.name) entry = &each;
  const CodecMaker inner = entry->read(options);
  const bool feedback = options.flag("error_feedback", entry->error_feedback);
  if (feedback && inner({})->traits().lossless)
    options.problem("error_feedback", "has nothing to carry over: codec '" + name + "' leaves nothing out");
  options.done();
  return [inner, feedback](const std::vector<CodecPiece>& pieces) {
    std::unique_ptr<Codec> codec = inner(pieces);
    if (feedback) codec = codecs::error_feedback(std::move(codec), codecs::numbers_of(pieces));
    return codec;
  };
}

const std::vector<CodecInfo>& codec_table() {
  static const std::vector<CodecInfo> infos = [] {
    std::vector<CodecInfo> list;
    for (const Entry& entry : table) list.push_back({entry.name, entry.about, entry.paper});
    return list;
  }();
  return infos;
}

}  // namespace echelon
