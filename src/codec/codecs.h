#pragma once
// The makers that the table in codecs.cpp lists: each reads the settings of its codec. And the wrappers: codecs around
// another one.

#include "codec/codec.h"

namespace echelon::codecs {

using ReadMaker = CodecMaker (*)(OptionReader&);

CodecMaker none(OptionReader&);
CodecMaker fp16(OptionReader&);
CodecMaker bf16(OptionReader&);
CodecMaker fixed16(OptionReader&);
CodecMaker flexpoint(OptionReader&);
CodecMaker dorefa(OptionReader&);
CodecMaker one_bit(OptionReader&);
CodecMaker two_bit(OptionReader&);
CodecMaker terngrad(OptionReader&);
CodecMaker qsgd(OptionReader&);
CodecMaker strom(OptionReader&);
CodecMaker top_k(OptionReader&);
CodecMaker dgc(OptionReader&);  // top_k with the defaults of Deep Gradient Compression
CodecMaker adaptive(OptionReader&);
CodecMaker random_k(OptionReader&);
CodecMaker low_rank(OptionReader&);

// Remembers what `inner` has left out and adds it to the next call's numbers (Seide et al. 2014).
std::unique_ptr<Codec> error_feedback(std::unique_ptr<Codec> inner, std::size_t numbers);

// The same, with the momentum of the optimizer taken before anything is left out (Lin et al. 2018).
struct MomentumSettings {
  double momentum = 0.9;
  double clip = 0;      // the largest norm that a sender's gradient may have; 0: any
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
