#pragma once
// Numbers of few bits inside a network, in float clothes: forward sees the quantised value, backward pretends that it
// was not quantised (the straight-through gradient of Bengio et al. 2013), except where a value was cut off. The
// numbers that the optimizer moves stay whole.

#include "graph/graph.h"

namespace echelon::ops {

// DoReFa-Net (Zhou et al. 2016). Weights: tanh(w) on 2^bits equal steps between -m and m, m the greatest |tanh(w)|; one
// bit is the sign times the mean |w|. The paper divides by m, which batch norm undoes; `keep_scale` does not divide,
// for networks without it. m counts as a constant in the gradient. Activations: clipped to [0, 1], on 2^bits steps.
Value dorefa_weights(Graph& g, Value w, int bits, bool keep_scale);
Value dorefa_activations(Graph& g, Value x, int bits);

// Binarised networks (Hubara et al. 2016): the sign; the gradient passes where |x| <= 1. `keep_scale` multiplies the
// weights by the mean |w| (Rastegari et al. 2016), for networks without batch norm.
Value binary_weights(Graph& g, Value w, bool keep_scale);
Value binary_activations(Graph& g, Value x);

// Ternary weight networks (Li and Liu 2016): -s, 0 or s; zero up to 0.7 of the mean |w|, s the mean of the others.
Value ternary_weights(Graph& g, Value w);

// Flexpoint (Koester et al. 2017): whole numbers of `bits` bits and one exponent for the whole tensor, here the
// smallest that its greatest number allows (the paper's Autoflex guesses it from earlier steps).
Value shared_exponent(Graph& g, Value x, int bits);

// Fixed point (Gupta et al. 2015): `bits` bits, `fraction` of them behind the point, rounded up or down by chance in
// training and to the nearest outside. `same_on_all_shards`: for weights, of which there is one.
Value fixed_point(Graph& g, Value x, int bits, int fraction, bool same_on_all_shards);

}  // namespace echelon::ops
