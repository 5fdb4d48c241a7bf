#pragma once
// Convolution on oneDNN, for plain and channel8 activations. Internal to kernels/; conv.h is the public face and says
// what the arguments mean. Weights are reordered into oneDNN's blocked form on every run, because every training step
// changes them (share of the time on ResNet-18's shapes: docs in conv.cpp).

#include "kernels/conv/conv.h"

namespace echelon::kernels {

std::size_t conv_onednn_forward_scratch(const ConvShape& shape, ConvLayouts layouts);
std::function<void()> make_conv_onednn_forward(const ConvShape& shape, ConvLayouts layouts, const float* x,
                                               const float* w, const float* bias, bool relu, float* y,
                                               std::byte* scratch);
std::size_t conv_onednn_backward_data_scratch(const ConvShape& shape, ConvLayouts layouts);
std::function<void()> make_conv_onednn_backward_data(const ConvShape& shape, ConvLayouts layouts, const float* dy,
                                                     const float* w, float* dx, std::byte* scratch);
std::size_t conv_onednn_backward_weights_scratch(const ConvShape& shape, ConvLayouts layouts);
std::function<void()> make_conv_onednn_backward_weights(const ConvShape& shape, ConvLayouts layouts, const float* x,
                                                        const float* dy, float* dw, float* db, std::byte* scratch);

}  // namespace echelon::kernels
