#pragma once
// Normalisations.

#include "graph/graph.h"

namespace echelon::ops {

// The gradient of a layer_norm (in: x, gamma, mean, rstd, dy; out: dx, dgamma, dbeta) a part of its rows at a time,
// with the same bits as all at once: dx of each part by itself, dgamma and dbeta from one part to the next. Every part
// but the last has a multiple of layer_norm_rows_together rows. `before`: dgamma and dbeta of the parts before; none
// for the first.
inline constexpr std::int64_t layer_norm_rows_together = 4;
bool is_layer_norm_grad(const Op& op);
Value layer_norm_rows_grad(Graph& g, Value x, Value gamma, Value mean, Value rstd, Value dy);
struct NormParameterGrads {
  Value gamma, beta;
};
NormParameterGrads layer_norm_parameter_grads(Graph& g, Value x, Value mean, Value rstd, Value dy,
                                              NormParameterGrads before);

// Batch norm over N, H, W of [N, C, H, W] (or over N of [N, C]). In a training graph it uses the statistics of this
// micro-batch (law 1: shards own their statistics) and contributes them to the running ones; otherwise it uses the
// running.
Value batch_norm(Graph& g, Value x, Value gamma, Value beta, Value running_mean, Value running_var, float eps);

// Layer norm over the last dimension.
Value layer_norm(Graph& g, Value x, Value gamma, Value beta, float eps);

// Local response norm across `size` channels: x / (k + alpha / size * sum x^2)^beta.
Value local_response_norm(Graph& g, Value x, int size, float alpha, float beta, float k);

// w = g v / |v|, the norm taken over all but the first dimension; g has the length of the first.
Value weight_norm(Graph& g, Value v, Value gain);

}  // namespace echelon::ops
