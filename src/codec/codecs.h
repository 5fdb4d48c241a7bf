#pragma once
// The rows that the table in codecs.cpp lists: one for each codec, in the codec's own file. And the wrappers: codecs
// around another one.

#include "codec/codec.h"

namespace echelon::codecs {

// Which wrappers a codec has unless the recipe says otherwise.
struct UsualWrappers {
  bool error_feedback = false;
  std::string layer_scale = "none";
  double momentum = 0;
  bool scales_itself = false;  // with that layer_scale
  bool lossless = false;       // leaves nothing out, so that only `entropy` makes sense around it
};

// Reads the settings of the codec itself; those of the wrappers are read by `read_codec`.
using ReadMaker = CodecMaker (*)(OptionReader&);
struct CodecPart : Part<ReadMaker> {
  UsualWrappers usual;
};
// The row of a codec: `info` has its own settings, and those of the wrappers are added.
CodecPart codec_part(PartInfo info, ReadMaker make, const UsualWrappers& usual = {});

CodecPart none();
CodecPart fp16();
CodecPart bf16();
CodecPart fixed16();
CodecPart flexpoint();
CodecPart dorefa();
CodecPart one_bit();
CodecPart two_bit();
CodecPart terngrad();
CodecPart qsgd();
CodecPart strom();
CodecPart top_k();
CodecPart adaptive();
CodecPart dgc();  // top_k with the defaults of Deep Gradient Compression
CodecPart random_k();
CodecPart low_rank();

// Remembers what `inner` has left out and adds it to the next call's numbers (Seide et al. 2014).
std::unique_ptr<Codec> error_feedback(std::unique_ptr<Codec> inner, std::size_t numbers);

// The same, with the momentum of the optimizer taken before anything is left out (Lin et al. 2018).
struct MomentumSettings {
  double momentum = 0.9;
  double clip = 0;      // the largest norm that the gradient of one sender alone may have; 0: any
  bool masking = true;  // stop the velocity of what was sent
};
std::unique_ptr<Codec> momentum_correction(std::unique_ptr<Codec> inner, std::size_t numbers,
                                           const MomentumSettings& settings);

// Scales of every call, or of the first one.
std::unique_ptr<Codec> layer_scale(std::unique_ptr<Codec> inner, const std::vector<CodecPiece>& pieces,
                                   bool first_call);
std::unique_ptr<Codec> entropy(std::unique_ptr<Codec> inner);

std::size_t numbers_of(const std::vector<CodecPiece>& pieces);

}  // namespace echelon::codecs
