#pragma once
// 2-D convolution on [N, C, H, W] with weights [out, C / groups, kh, kw].

#include "graph/graph.h"

namespace echelon::ops {

struct Conv2d {
  int stride_h = 1, stride_w = 1;
  int pad_h = 0, pad_w = 0;
  int dilation_h = 1, dilation_w = 1;
  int groups = 1;
};

Value conv2d(Graph& g, Value x, Value w, Value b /* may be no value */, const Conv2d& p);

// The transposed convolution (PyTorch's ConvTranspose2d): x[N, C, h, w] with weights [C, out / groups, kh, kw] -> [N,
// out, H, W] with H = (h - 1) * stride - 2 * pad + dilation * (kh - 1) + 1 + more_h. It is what backward does to the
// data of the convolution with the same weights, from H x W to h x w.
Value conv_transpose2d(Graph& g, Value x, Value w, Value b /* may be no value */, const Conv2d& p, int more_h = 0,
                       int more_w = 0);

// For passes/fuse.h: the same convolution with a ReLU on its result, or null if `op` is not a plain one.
std::shared_ptr<const Op> conv2d_with_relu(const Op& op);

}  // namespace echelon::ops
