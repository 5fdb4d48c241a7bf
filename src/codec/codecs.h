#pragma once
// The makers that the table in codecs.cpp lists: each reads the settings of its codec. And the wrappers: codecs around
// another one.

#include "codec/codec.h"

namespace echelon::codecs {

using ReadMaker = CodecMaker (*)(OptionReader&);

CodecMaker none(OptionReader&);
CodecMaker fp16(OptionReader&);
CodecMaker bf16(OptionReader&);
CodecMaker one_bit(OptionReader&);
CodecMaker top_k(OptionReader&);

// Remembers what `inner` has left out and adds it to the next call's numbers (Seide et al. 2014).
std::unique_ptr<Codec> error_feedback(std::unique_ptr<Codec> inner, std::size_t numbers);

std::size_t numbers_of(const std::vector<CodecPiece>& pieces);

}  // namespace echelon::codecs
