#pragma once
// A GPT-style Transformer (Radford et al. 2019): learned positions, normalisation before attention and before the
// feed-forward part, GELU. Weights start as GPT-2's: normal with deviation 0.02, smaller by sqrt(2 * layers) where a
// branch joins the residual stream.

#include "models/network.h"

namespace echelon::models {

struct GptOptions {
  std::int64_t width = 256;
  int heads = 4, layers = 4;
  bool tied = false;  // the table that embeds tokens also scores them
  float dropout = 0;  // on the embedding and where a branch joins
  // With experts, the feed-forward part is a mixture of them (nn::MoeOptions).
  int experts = 0, experts_per_token = 2;
  float capacity = 1.25f, balance = 0.01f;
};
// tokens i32[N, T] -> [N, T, vocabulary]
Value gpt(nn::Net& net, Value tokens, std::int64_t vocabulary, const GptOptions& options = {});

std::unique_ptr<Model> make_gpt(OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
