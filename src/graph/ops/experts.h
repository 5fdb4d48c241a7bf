#pragma once
// A mixture of experts: rows are routed to some of several networks of the same shape, and their answers are weighed.
// Experts are cut over slices by themselves: a slice has whole experts and sees only the rows that go to them.

#include "graph/graph.h"

namespace echelon::ops {

struct Routes {
  Value slots;  // i32 [rows, top]: where each row goes; -1: an expert's capacity was full
  Value gates;  // [rows, top]: what the answers weigh
  Value load;   // [experts]: the share of rows whose first choice it is; has no gradient
};

// probabilities[rows, experts]; `top` experts for each row (1 or 2), each of which takes at most `capacity` rows.
Routes route(Graph& g, Value probabilities, int top, std::int64_t capacity);

// x[rows, width] -> [experts, capacity, width]: zeros where no row came.
Value dispatch(Graph& g, Value x, Value slots, std::int64_t experts, std::int64_t capacity);

// y[experts, capacity, width] -> [rows, width]: each row's answers, weighed and added up.
Value combine(Graph& g, Value y, Value slots, Value gates);

// A linear layer for each expert: x[experts, rows, in], w[experts, out, in], b[experts, out] -> [experts, rows, out].
Value expert_linear(Graph& g, Value x, Value w, Value b);

}  // namespace echelon::ops
