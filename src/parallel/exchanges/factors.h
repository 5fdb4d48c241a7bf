#pragma once
// What both ways of exchanging factors have in common: the choice for each layer, and the place of every worker's rows.

#include <vector>

#include "parallel/exchange.h"
#include "parallel/thin_product.h"

namespace echelon::exchanges {

struct FactorSettings {
  enum class To { all, owners } to = To::all;
  bool hybrid = false;  // whichever is smaller, layer by layer; else factors wherever there are some
};

// Numbers that all workers together send for a layer, for `samples` of the global batch:
//   to all     factors: each worker its rows to n - 1 others; whole: a reduce-scatter and an all-gather
//   to owners  factors: all rows to one owner; whole: a gradient from each worker but the owner. (The answer is the
//   same)
bool factors_are_smaller(const ThinProduct& product, std::size_t samples, int workers, FactorSettings::To to);

// Samples of the global batch that fall to a worker.
std::size_t samples_of(Rank rank, int workers, std::size_t batch);

// Every worker's rows of one layer, one worker after the other: its errors, then its inputs.
struct FactorRows {
  std::size_t rows = 0;
  std::size_t errors = 0, inputs = 0;  // where they begin, in floats
};

// out[range] = sum over workers of errors^T inputs, in the order of workers: the same bits wherever it is computed.
void multiply_factors(const ThinProduct& product, std::span<const FactorRows> rows, const float* values, float* out,
                      Buffer& scratch);

std::unique_ptr<Exchange> make_factor_broadcast(const FactorSettings& settings, ExchangeParts parts);
std::unique_ptr<Exchange> make_factor_owners(const FactorSettings& settings, ExchangeParts parts);

// The ranges of parameters that the workers own: whole parameters, as even as these allow.
// `offsets` ascend, from 0.
std::vector<Range> owners_of_parameters(std::span<const std::size_t> offsets, std::size_t floats, int workers);

}  // namespace echelon::exchanges
