#pragma once
// In which buckets and in which order changes leave a worker: the [order] table of a recipe. An order is the answers to
// the questions that an exchange asks while it plans its messages; a new order is a row with other answers
// (parallel/order.cpp). Plain data; thread-safe.

#include <cstddef>

#include "base/part.h"

namespace echelon {

struct Composition;
struct CompositionFacts;

struct Order {
  bool is_early = false;            // something leaves while backward still runs
  bool cuts_slices = false;         // keys are slices of at most `bytes`, which leave one by one
  bool defers = false;              // the next forward waits for each answer when it needs it
  bool first_needed_first = false;  // of what is ready, the slice leaves first that the next forward reads first
  bool same_everywhere = false;     // all workers and servers keep one order, computed once (TicTac)
  bool by_times = false;            // that order is from measured times (TAC), else from the graph alone (TIC)
  bool by_magnitude = false;        // the most significant slices first, as many as `rate` allows; the others later
  std::size_t bytes = 0;            // of a slice at most, else of a bucket at least
  double rate = 1;                  // of the measured link's bytes a second, each way

  // Adds one problem for each reason why the composition cannot have this order, with a cure.
  void accepts(const Composition& composition, const CompositionFacts& facts, Problems& problems) const;

 private:
  void accepts_budget(const Composition& composition, Problems& problems) const;
};

using OrderPart = Part<Order (*)(OptionReader&)>;
const std::vector<OrderPart>& order_parts();
// [order]; calls `done`. `usual`: the part that is taken if the table names none.
Order read_order(OptionReader& options, const std::string& usual);

// Why nothing of a gradient can leave while backward still runs, and what to take instead; empty: it can. Whatever
// order the composition has.
std::string why_not_early(const Composition& composition);

}  // namespace echelon
