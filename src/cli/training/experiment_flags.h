#pragma once
// What the flags of experiments say: --link 100mbit,1ms, --straggler rank=2,factor=4,
// --byzantine 2:sign_flip and --flip-bit rank=1,step=20.
// BadInput that shows how it is written otherwise.

#include <string>

#include "parallel/step/bit_flip.h"
#include "parallel/team/byzantine.h"
#include "parallel/team/straggler.h"
#include "world/wrappers/metered.h"

namespace echelon::cli {

// A rate with kbit, mbit or gbit (thousands, a second; with /s or without) and perhaps a latency with us, ms or s, in
// large or small letters. Units that could be bits or bytes (mb, MB/s, mbps) are refused.
LinkLimit read_link(const std::string& text);

// rank=N or rank=any, factor=F and perhaps chance=C, in any order.
Straggler read_straggler(const std::string& text);

// COUNT:LIE or COUNT:LIE:STRENGTH.
Byzantine read_byzantine(const std::string& text);

// rank=N, step=N and perhaps of=weights, of=gradient or of=nan, in any order.
BitFlip read_flip(const std::string& text);

}  // namespace echelon::cli
