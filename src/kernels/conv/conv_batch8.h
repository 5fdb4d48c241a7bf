#pragma once
// Convolution in batch8, where one vector holds the same pixel of eight samples: every product of the convolution is
// then one multiply-add of a vector with a broadcast weight, whatever the channel counts, strides and dilations are,
// and the vector is always full. Internal to kernels/; conv.h is the public face.
//
// All three directions run on a *tap list*: the source, padded with zeros in scratch where needed, is read at
// `pixel + offset[tap]`, where a tap is an (input channel, ky, kx). The gradient of the input is the same operation on
// dy with other offsets, once for every phase of the stride.

#include "kernels/conv/conv.h"

namespace echelon::kernels {

std::size_t conv_batch8_forward_scratch(const ConvShape& shape);
std::function<void()> make_conv_batch8_forward(const ConvShape& shape, const float* x, const float* w,
                                               const float* bias, bool relu, float* y, std::byte* scratch);
std::size_t conv_batch8_backward_data_scratch(const ConvShape& shape);
std::function<void()> make_conv_batch8_backward_data(const ConvShape& shape, const float* dy, const float* w, float* dx,
                                                     std::byte* scratch);
std::size_t conv_batch8_backward_weights_scratch(const ConvShape& shape);
std::function<void()> make_conv_batch8_backward_weights(const ConvShape& shape, const float* x, const float* dy,
                                                        float* dw, float* db, std::byte* scratch);

}  // namespace echelon::kernels
