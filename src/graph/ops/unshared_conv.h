#pragma once
// A locally connected layer (kernels/conv/unshared_conv.h): windows as of a convolution, with weights of their own at
// every place. Cut into slices it is cut by rows of the output (columns where the input is), weights and all: a slice
// needs its own rows of the input and the halo, so nothing goes from everybody to everybody.

#include "graph/graph.h"

namespace echelon::ops {

struct UnsharedConv2d {
  int kernel_h = 3, kernel_w = 3, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
};

// x [N, C, H, W], w [H', W', out, C * kernel], bias [H', W', out] or none -> [N, out, H', W'].
Value unshared_conv2d(Graph& g, Value x, Value w, Value bias, const UnsharedConv2d& p);
// The extents of the weights for an input; BadInput if the window does not fit.
Shape unshared_weights(const Shape& x, std::int64_t out, const UnsharedConv2d& p);

}  // namespace echelon::ops
