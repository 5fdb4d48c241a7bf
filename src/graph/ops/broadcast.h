#pragma once
// Products and sums with a smaller operand that stands for many elements.

#include "graph/graph.h"

namespace echelon::ops {

// x[a.., b..] * s[a..]: each row of x times its own number, as a gate on every channel: [N, C, H, W] by [N, C].
Value scale_rows(Graph& g, Value x, Value s);
// x[N, C, H, W] + b[C].
Value add_channels(Graph& g, Value x, Value b);

}  // namespace echelon::ops
