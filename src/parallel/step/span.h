#pragma once
// A stretch of time of a rank's driving thread, for traces.

namespace echelon {

struct Span {
  const char* name;
  double begin, end;      // seconds of the rank's clock
  bool exchange = false;  // with other ranks: what the rank waits for them lies within such spans
};

}  // namespace echelon
