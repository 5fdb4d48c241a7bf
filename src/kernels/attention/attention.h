#pragma once
// The core of multi-head attention: out = softmax(scale * q k^T [+ causal mask]) v for every sample and head, without
// ever holding the [seq, seq] matrix of probabilities: forward keeps one number a row (the log of the softmax's
// denominator) and backward computes the probabilities again, tile by tile.
//
// Single-threaded, no allocation, deterministic, thread-safe with separate scratch (see gemm.h). Nothing throws.

#include <cstddef>
#include <cstdint>

namespace echelon::kernels {

struct AttentionShape {
  std::int64_t batch = 0, heads = 0, dim = 0;  // dim: width of one head
  std::int64_t queries = 0, keys = 0;          // sequence lengths; equal for self-attention
  bool causal = false;                         // query i sees keys 0 .. i + keys - queries; needs keys >= queries
  float scale = 0;                             // 0 means 1 / sqrt(dim)
};

// Where element (sample, position, head, j) of a tensor lies: base + sample * batch + position * row + head * dim + j.
struct HeadStrides {
  std::int64_t batch = 0, row = 0;
};

// q, k, v (or their gradients) with the distances between them.
struct AttentionInput {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  HeadStrides q_at, kv_at;
};
struct AttentionGrad {
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;  // all three, each overwritten
  HeadStrides dq_at, dkv_at;
};

// The three parts of packed qkv[batch, seq, 3, heads, dim], the output of Linear(width, 3 * width).
AttentionInput split_qkv(const AttentionShape& s, const float* qkv);
AttentionGrad split_dqkv(const AttentionShape& s, float* dqkv);

std::size_t attention_scratch(const AttentionShape& s);  // bytes, enough for forward and backward
std::size_t attention_saved(const AttentionShape& s);    // bytes: batch * heads * queries floats

// out[batch, queries, heads * dim]; `saved` is what backward needs besides the inputs and out.
void attention_forward(const AttentionShape& s, const AttentionInput& in, float* out, float* saved, void* scratch);
void attention_backward(const AttentionShape& s, const AttentionInput& in, const float* out, const float* saved,
                        const float* dout, const AttentionGrad& grad, void* scratch);

void ref_attention_forward(const AttentionShape& s, const AttentionInput& in, float* out);
void ref_attention_backward(const AttentionShape& s, const AttentionInput& in, const float* dout,
                            const AttentionGrad& grad);

}  // namespace echelon::kernels
