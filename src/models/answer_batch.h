#pragma once
// Batches in which a trained network answers. Kernels treat whole groups of sixteen samples alike, so a sample's answer
// has the same bits in every batch of a multiple of sixteen, at every place; a smaller one may take another kernel,
// which adds in another order. Whoever asks a network (predict, serve) fills its batches up to such a size, with zeros.

#include <cstdint>

namespace echelon::models {

constexpr std::int64_t answer_group = 16;

constexpr std::int64_t answer_batch(std::int64_t samples) {
  return (samples + answer_group - 1) / answer_group * answer_group;
}

}  // namespace echelon::models
