#pragma once
// Denoising autoencoders (Vincent et al. 2008): the network sees a noisy sample and is asked for the clean one.
//   autoencoder        dense, from the sample through narrowing layers to a code and back
//   conv_autoencoder   two strided convolutions to a quarter of the side and a dense code, and back by upsampling

#include "models/network.h"

namespace echelon::models {

// Both: a sample [N, ...] -> scores of the same shape.
Value dense_autoencoder(nn::Net& net, Value x, const std::vector<std::int64_t>& hidden);
Value conv_autoencoder(nn::Net& net, Value x, std::int64_t width, std::int64_t code);

std::unique_ptr<Model> make_autoencoder(OptionReader& options, const InputSpec& inputs);
std::unique_ptr<Model> make_conv_autoencoder(OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
