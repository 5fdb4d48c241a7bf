#pragma once
// The routes of a mixture of experts: which rows go to which expert, and the way back. An expert takes at most
// `capacity` rows; what does not fit is dropped. First choices of all rows come before second ones, rows in their
// order, so the routes are a function of the probabilities alone. Single-threaded, allocates nothing, thread-safe.

#include <cstddef>
#include <cstdint>

namespace echelon::kernels {

struct Experts {
  std::size_t rows = 0, experts = 0, top = 1, capacity = 0;  // top: to how many experts each row goes, 1 or 2
};

// probabilities[rows, experts] ->
//   choice[rows, top]  the experts, the most probable first (the first of equals)
//   slot[rows, top]    expert * capacity + its place there; -1: dropped
//   gate[rows, top]    top 1: the probability; top 2: the two, scaled to add up to one
//   load[experts]      the share of rows whose first choice it is
// `places` is scratch: a number for each expert.
void route(const Experts& e, const float* probabilities, std::int32_t* choice, std::int32_t* slot, float* gate,
           float* load, std::int32_t* places);
// d_probabilities from d_gate; overwritten.
void route_grad(const Experts& e, const float* probabilities, const std::int32_t* choice, const float* d_gate,
                float* d_probabilities);

// The slots [first, first + count) of all: those of a slice's experts.
struct Slots {
  std::int32_t first = 0, count = 0;
  bool has(std::int32_t slot) const { return slot >= first && slot < first + count; }
};

// y[count, width] = the rows x[rows, width] that go there, zeros where none does.
void dispatch(const Experts& e, Slots slots, const std::int32_t* slot, const float* x, float* y, std::size_t width);
// out[rows, width] = the sum of gate * y[slot] over a row's slots; `gate` null: ones.
void combine(const Experts& e, Slots slots, const std::int32_t* slot, const float* gate, const float* y, float* out,
             std::size_t width);
// The gradients of combine: dy[count, width] = gate * d_out, d_gate[rows, top] = y . d_out; overwritten.
void combine_grad(const Experts& e, Slots slots, const std::int32_t* slot, const float* gate, const float* y,
                  const float* d_out, float* dy, float* d_gate, std::size_t width);

}  // namespace echelon::kernels
