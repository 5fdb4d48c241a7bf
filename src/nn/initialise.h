#pragma once
// The first values of parameters. Every number is a pure function of (seed, the parameter's name, its index), so it
// does not matter who fills which parameter, in which order, or how many cores help. Thread-safe: there is no state.

#include <cstdint>
#include <span>
#include <string_view>

#include "graph/parameter.h"
#include "graph/program.h"

namespace echelon::nn {

// Rules to hand to a layer; the layer adds its own fans. Uniform ones have the same variance as their normal twins.
Init constant(float value);
Init normal(float deviation);
Init uniform(float bound);
Init xavier_uniform(float gain = 1);  // variance gain^2 * 2 / (fan_in + fan_out)  (Glorot and Bengio 2010)
Init xavier_normal(float gain = 1);
Init he_uniform(float gain = 1);  // variance gain^2 * 2 / fan_in              (He et al. 2015)
Init he_normal(float gain = 1);
Init orthogonal(float gain = 1);  // rows (or columns, if there are more rows) of length gain, at right angles
// What PyTorch gives linear, convolution and recurrent layers: uniform within 1 / sqrt(fan_in).
Init torch_default(std::int64_t fan_in);

// One of the rules by name ("he_normal" ...), as recipes write them; BadInput for any other name.
Init init_by_name(std::string_view name, float value);
std::span<const std::string_view> init_names();

// The standard deviation of the numbers that a rule gives.
double deviation(const Init& init);

// Fills one parameter: `out` has parameter.shape.elements() floats.
void initialise(const Parameter& parameter, std::uint64_t seed, std::span<float> out);
// Fills a model's flat buffer (table.floats() of them).
void initialise(const ParameterTable& table, std::uint64_t seed, std::span<float> flat);

}  // namespace echelon::nn
