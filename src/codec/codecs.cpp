#include "codec/codecs.h"

#include <array>
#include <optional>

#include "base/error.h"

namespace echelon {

namespace {

struct Entry {
  const char* name;
  codecs::ReadMaker read;
  // Which wrappers it has unless the recipe says otherwise.
  struct Defaults {
    bool error_feedback = false;
    const char* layer_scale = "none";
    double momentum = 0;
    bool scales_itself = false;  // with that layer_scale
  } defaults;
  const char *about, *paper;
};

constexpr Entry::Defaults plain{}, feedback{.error_feedback = true};
constexpr Entry::Defaults scaled_feedback{.error_feedback = true, .layer_scale = "every_call"};
constexpr Entry::Defaults own_scale{.error_feedback = true, .layer_scale = "every_call", .scales_itself = true};
constexpr Entry::Defaults own_first_scale{.error_feedback = true, .layer_scale = "first_call", .scales_itself = true};

// Every codec there is.
constexpr std::array table = {
    Entry{"none", codecs::none, plain, "float32, as the numbers are", ""},
    Entry{"fp16", codecs::fp16, plain, "IEEE half precision, rounded to the nearest", ""},
    Entry{"bf16", codecs::bf16, plain, "bfloat16: the range of float32 with 8 bits of precision", ""},
    Entry{"fixed16", codecs::fixed16, plain, "16-bit fixed point, stochastic rounding",
          "Gupta et al. 2015, Deep Learning with Limited Numerical Precision"},
    Entry{"flexpoint", codecs::flexpoint, plain, "16-bit integers with one exponent for each parameter",
          "Koester et al. 2017, Flexpoint"},
    Entry{"dorefa", codecs::dorefa, plain, "k bits between plus and minus the largest, stochastic rounding",
          "Zhou et al. 2016, DoReFa-Net"},
    Entry{"one_bit", codecs::one_bit, feedback, "the sign of each number, and the mean on either side of zero",
          "Seide et al. 2014, 1-Bit Stochastic Gradient Descent"},
    Entry{"two_bit", codecs::two_bit, own_scale, "plus or minus a threshold, or nothing", "MXNet"},
    Entry{"terngrad", codecs::terngrad, plain, "-s, 0 or +s, drawn with the right expectation",
          "Wen et al. 2017, TernGrad"},
    Entry{"qsgd", codecs::qsgd, plain, "a few levels of each bucket's norm, drawn, and entropy coding",
          "Alistarh et al. 2017, QSGD"},
    Entry{"strom", codecs::strom, own_first_scale, "plus or minus a threshold, only where it is reached",
          "Strom 2015, Scalable Distributed DNN Training Using Commodity GPU Cloud Computing"},
    Entry{"top_k", codecs::top_k, feedback, "the largest numbers only, a given share of them",
          "Aji, Heafield 2017, Sparse Communication for Distributed Gradient Descent"},
    Entry{"adaptive", codecs::adaptive, scaled_feedback,
          "the largest share above and below zero, as the mean of each side",
          "Dryden et al. 2016, Communication Quantization for Data-Parallel Training"},
    Entry{"dgc",
          codecs::dgc,
          {.momentum = 0.9},
          "the largest numbers, with momentum correction, masking and a warm-up of the share",
          "Lin et al. 2018, Deep Gradient Compression"},
    Entry{"random_k", codecs::random_k, plain, "a random mask, another one in every exchange",
          "Konecny et al. 2016, Federated Learning: Strategies for Improving Communication Efficiency"},
    Entry{"low_rank", codecs::low_rank, feedback, "the two factors of a low-rank approximation of each matrix",
          "Vogels et al. 2019, PowerSGD"},
};

std::optional<codecs::MomentumSettings> read_momentum(OptionReader& options, const Entry& entry) {
  codecs::MomentumSettings s;
  s.momentum = options.number("momentum", entry.defaults.momentum, 0, 0.9999);
  if (s.momentum == 0 && entry.defaults.momentum == 0) return std::nullopt;
  s.clip = options.number("clip", 0, 0);
  s.masking = options.flag("masking", true);
  return s;
}

}  // namespace

CodecMaker read_codec(OptionReader& options) {
  std::vector<std::string> names;
  for (const Entry& entry : table) names.emplace_back(entry.name);
  const std::string name = options.choice("name", "none", names);
  const Entry* entry = table.begin();
  for (const Entry& each : table)
    if (name == each.name) entry = &each;
  const CodecMaker inner = entry->read(options);
  const std::string scaled =
      options.choice("layer_scale", entry->defaults.layer_scale, {"none", "every_call", "first_call"});
  const bool wrapped = scaled != "none" && !(entry->defaults.scales_itself && scaled == entry->defaults.layer_scale);
  const bool coded = options.flag("entropy", false);
  const auto momentum = read_momentum(options, *entry);
  const bool carried = options.flag("error_feedback", entry->defaults.error_feedback && !momentum);
  if (inner({})->traits().lossless) {
    if (carried)
      options.problem("error_feedback", "has nothing to carry over: codec '" + name + "' leaves nothing out");
    if (momentum) options.problem("momentum", "is for codecs that leave something out; use the optimizer's");
    if (scaled != "none") options.problem("layer_scale", "makes no difference to codec '" + name + "'");
  }
  if (momentum && carried)
    options.problem("error_feedback", "comes with momentum already: leave it out, or set momentum = 0");
  options.done();
  return [=](const std::vector<CodecPiece>& pieces) {
    std::unique_ptr<Codec> codec = inner(pieces);
    if (wrapped) codec = codecs::layer_scale(std::move(codec), pieces, scaled == "first_call");
    if (coded) codec = codecs::entropy(std::move(codec));
    if (momentum) codec = codecs::momentum_correction(std::move(codec), codecs::numbers_of(pieces), *momentum);
    if (carried) codec = codecs::error_feedback(std::move(codec), codecs::numbers_of(pieces));
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
