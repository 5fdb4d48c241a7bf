#include "codec/codecs.h"

#include <optional>

#include "base/error.h"

namespace echelon {

namespace {

const std::vector<codecs::CodecPart>& table() {
  using namespace codecs;
  static const std::vector<CodecPart> rows{none(),     fp16(),    bf16(),     fixed16(), flexpoint(), dorefa(),
                                           one_bit(),  two_bit(), terngrad(), qsgd(),    strom(),     top_k(),
                                           adaptive(), dgc(),     random_k(), low_rank()};
  return rows;
}

std::optional<codecs::MomentumSettings> read_momentum(OptionReader& options, const codecs::UsualWrappers& usual) {
  codecs::MomentumSettings s;
  s.momentum = options.number("momentum", usual.momentum, 0, 0.9999);
  if (s.momentum == 0 && usual.momentum == 0) return std::nullopt;
  s.clip = options.number("clip", 0, 0);
  s.masking = options.flag("masking", true);
  return s;
}

}  // namespace

namespace codecs {

CodecPart codec_part(PartInfo info, ReadMaker make, const UsualWrappers& usual) {
  CodecPart part{{std::move(info), make}, usual};
  const Setting entropy{"entropy", "false", "code the bytes by their frequency"};
  if (usual.lossless)
    part.settings.push_back(entropy);
  else
    part.settings.insert(
        part.settings.end(),
        {{"error_feedback", usual.error_feedback ? "true" : "false", "carry what was left out into the next exchange"},
         {"layer_scale", "\"" + usual.layer_scale + "\"",
          "parameters by their root mean square: none, every_call, first_call"},
         entropy,
         {"momentum", usual.momentum > 0 ? fmt::format("{}", usual.momentum) : "0",
          "taken before anything is left out, instead of the optimizer's"},
         {"clip", "0",
          "with momentum: the most that the norm of a worker's gradient may be, times n^-1/2; 0: no limit"},
         {"masking", "true", "with momentum: stop the velocity of what was sent"}});
  return part;
}

}  // namespace codecs

CodecMaker read_codec(OptionReader& options) {
  const codecs::CodecPart& part = chosen_row(table(), options, "none");
  const CodecMaker inner = part.make(options);
  const std::string scaled =
      options.choice("layer_scale", part.usual.layer_scale, {"none", "every_call", "first_call"});
  const bool wrapped = scaled != "none" && !(part.usual.scales_itself && scaled == part.usual.layer_scale);
  const bool coded = options.flag("entropy", false);
  const auto momentum = read_momentum(options, part.usual);
  const bool carried = options.flag("error_feedback", part.usual.error_feedback && !momentum);
  if (inner({})->traits().lossless) {
    if (carried)
      options.problem("error_feedback", "has nothing to carry over: codec '" + part.name + "' leaves nothing out");
    if (momentum) options.problem("momentum", "is for codecs that leave something out; use the optimizer's");
    if (scaled != "none") options.problem("layer_scale", "makes no difference to codec '" + part.name + "'");
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

std::vector<PartInfo> codec_parts() { return infos_of(table()); }
std::vector<std::string> codec_names() { return names_of(table()); }

}  // namespace echelon
