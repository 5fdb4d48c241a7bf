#pragma once
// What the flags of experiments say: --link 100mbit,1ms and --straggler rank=2,factor=4. BadInput that shows how it is
// written otherwise.

#include <string>

#include "parallel/team/straggler.h"
#include "world/wrappers/metered.h"

namespace echelon::cli {

// A rate with kbit, mbit or gbit (thousands, a second; with /s or without) and perhaps a latency with us, ms or s, in
// large or small letters. Units that could be bits or bytes (mb, MB/s, mbps) are refused.
LinkLimit read_link(const std::string& text);

// rank=N or rank=any, factor=F and perhaps chance=C, in any order.
Straggler read_straggler(const std::string& text);

}  // namespace echelon::cli
