#pragma once
// A generative adversarial network (Goodfellow et al. 2014) on images: a generator that turns noise into images and a
// discriminator that tells them from real ones, trained in turns. The two phases of a step:
//   discriminator  real images and as many generated ones; only the discriminator learns
//   generator      generated images; only the generator learns, from the discriminator's mistakes (the non-saturating
//                  loss); it needs no data
// `kind` "conv" follows DCGAN (Radford et al. 2015) with upsampling and convolution instead of transposed convolution;
// "dense" uses linear layers. Images are taken and made in [0, 1].

#include <memory>

#include "base/options.h"
#include "models/model.h"
#include "nn/layers.h"

namespace echelon::models {

struct GanOptions {
  bool conv = true;
  std::int64_t latent = 64;  // numbers of noise for an image
  std::int64_t width = 32;   // channels (conv: this and twice this) or hidden units (dense: 8 and 16 times this)
  std::int64_t discriminator_width = 0;  // the discriminator's, which may well be the stronger one; 0: the same
  float real_target = 0.9f;              // one-sided label smoothing (Salimans et al. 2016)
};
Value gan_generator(nn::Net& net, Value noise, Shape image, const GanOptions& options);  // -> [N, C, H, W] in [0, 1]
Value gan_discriminator(nn::Net& net, Value image, const GanOptions& options);           // -> [N, 1], positive: real

std::unique_ptr<Model> make_gan(OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
