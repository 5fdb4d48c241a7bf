#pragma once
// 3x3 convolutions of stride 1 in channel8 by Winograd's F(4x4, 3x3) (Lavin & Gray 2016): 4x4 outputs cost 36 products
// instead of 144. Tiles of the input and the weights are transformed, multiplied as 36 independent matrices, and the
// products transformed back; both gradients are the same scheme with the roles exchanged. Internal to kernels/; conv.h
// is the public face. Against a direct convolution results differ by about 1e-5 of the largest one (tests).

#include "kernels/conv/conv.h"

namespace echelon::kernels {

// Whether the shape is one that these kernels compute (in {channel8, channel8}) faster than a direct convolution.
bool winograd_suits(const ConvShape& shape, ConvLayouts layouts);

std::size_t conv_winograd_forward_scratch(const ConvShape& shape);
std::function<void()> make_conv_winograd_forward(const ConvShape& shape, const float* x, const float* w,
                                                 const float* bias, bool relu, float* y, std::byte* scratch);
std::size_t conv_winograd_backward_data_scratch(const ConvShape& shape);
std::function<void()> make_conv_winograd_backward_data(const ConvShape& shape, const float* dy, const float* w,
                                                       float* dx, std::byte* scratch);
std::size_t conv_winograd_backward_weights_scratch(const ConvShape& shape);
std::function<void()> make_conv_winograd_backward_weights(const ConvShape& shape, const float* x, const float* dy,
                                                          float* dw, float* db, std::byte* scratch);

}  // namespace echelon::kernels
