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
};

constexpr Entry::Defaults plain{}, feedback{.error_feedback = true};
constexpr Entry::Defaults own_scale{.error_feedback = true, .layer_scale = "every_call", .scales_itself = true};
constexpr Entry::Defaults own_first_scale{.error_feedback = true, .layer_scale = "first_call", .scales_itself = true};

// Every codec there is.
constexpr std::array table = {
    Entry{"none", codecs::none, plain},
    Entry{"fp16", codecs::fp16, plain},
    Entry{"bf16", codecs::bf16, plain},
    Entry{"fixed16", codecs::fixed16, plain},
    Entry{"flexpoint", codecs::flexpoint, plain},
    Entry{"dorefa", codecs::dorefa, plain},
    Entry{"one_bit", codecs::one_bit, feedback},
    Entry{"two_bit", codecs::two_bit, own_scale},
    Entry{"terngrad", codecs::terngrad, plain},
    Entry{"qsgd", codecs::qsgd, plain},
    Entry{"strom", codecs::strom, own_first_scale},
    Entry{"top_k", codecs::top_k, feedback},
    Entry{"adaptive", codecs::adaptive, own_scale},
    Entry{"dgc", codecs::dgc, {.momentum = 0.9}},
    Entry{"random_k", codecs::random_k, plain},
    Entry{"low_rank", codecs::low_rank, feedback},
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
  const std::string name = options.choice("name", "none", codec_names());
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

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const Entry& entry : table) names.emplace_back(entry.name);
  return names;
}

}  // namespace echelon
