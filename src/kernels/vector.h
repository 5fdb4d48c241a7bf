#pragma once
// Plain arithmetic on element ranges: what the shard tree, gradient accumulation and the exchange of models are made
// of. Exactly rounded, each element on its own, so a range may be split anywhere and every machine gives the same bits.
// dst may be the same memory as a source. Thread-safe on distinct ranges, allocates nothing.

#include <cstddef>

namespace echelon::kernels {

void fill(float* dst, float value, std::size_t n);
void copy(float* dst, const float* src, std::size_t n);
void add(float* dst, const float* a, const float* b, std::size_t n);            // dst = a + b, a node of the shard tree
void add_into(float* dst, const float* src, std::size_t n);                     // dst += src
void scale(float* dst, const float* src, float c, std::size_t n);               // dst = c * src
void axpy(float* dst, float c, const float* x, std::size_t n);                  // dst += c * x
void lerp(float* dst, const float* a, const float* b, float t, std::size_t n);  // dst = a + t * (b - a)

bool all_finite(const float* x, std::size_t n);

void ref_add(float* dst, const float* a, const float* b, std::size_t n);
void ref_scale(float* dst, const float* src, float c, std::size_t n);
void ref_axpy(float* dst, float c, const float* x, std::size_t n);
void ref_lerp(float* dst, const float* a, const float* b, float t, std::size_t n);
bool ref_all_finite(const float* x, std::size_t n);

}  // namespace echelon::kernels
