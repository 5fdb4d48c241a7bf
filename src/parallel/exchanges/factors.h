#pragma once
// What exchanges of factors have in common: the choice for each layer, and the product.

#include <vector>

#include "parallel/exchange.h"
#include "parallel/step/thin_product.h"

namespace echelon::exchanges {

struct FactorSettings {
  bool hybrid = false;   // whichever is smaller, layer by layer; else factors wherever there are some
  bool servers = false;  // what goes whole goes to parameter servers, one on each worker; else it is all-reduced
};

// Whether all workers together send fewer numbers for a layer as factors, for `samples` of the global batch: each
// worker its rows to n - 1 others; or, whole, its parts to the n servers or owners, and their answers. That is
// Poseidon's comparison of K (n - 1) (M + N) with 2 M N (n - 1) / n, for K samples of a worker and servers on all n
// workers.
bool factors_are_smaller_for_all(const ThinProduct& product, std::size_t samples);

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

}  // namespace echelon::exchanges
