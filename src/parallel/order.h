#pragma once
// In which buckets and in which order changes leave a worker: the [order] table of a recipe. Exchanges ask it
// questions; what a kind of order means is here. Plain data; thread-safe.

#include <cstddef>

#include "base/part.h"

namespace echelon {

struct Composition;
struct CompositionFacts;

struct Order {
  enum class Kind {
    backward,   // each bucket (of at least `bytes`) as soon as it is ready
    whole,      // everything after backward, in one bucket
    fusion,     // buckets of at least `bytes`, as they become ready
    priority,   // slices of at most `bytes`, those first that the next forward needs first
    enforced,   // the same order at every worker and server, computed once from the graph (TicTac)
    magnitude,  // the most significant slices first, as many as `rate` allows; the others later
  };
  Kind kind = Kind::backward;
  std::size_t bytes = 0;
  double rate = 1;  // of the model's bytes per step

  // Something leaves while backward still runs.
  bool is_early() const { return kind != Kind::whole && kind != Kind::magnitude; }
  // The next forward waits for each answer when it needs it.
  bool defers() const { return kind == Kind::priority || kind == Kind::enforced; }
  bool cuts_slices() const { return defers() || kind == Kind::magnitude; }

  // Adds one problem for each reason why the composition cannot have this order, with a cure.
  void accepts(const Composition& composition, const CompositionFacts& facts, Problems& problems) const;
};

using OrderPart = Part<Order (*)(OptionReader&)>;
const std::vector<OrderPart>& order_parts();
// [order]; calls `done`. `usual`: the kind if the table names none.
Order read_order(OptionReader& options, Order::Kind usual);
const char* to_text(Order::Kind kind);

}  // namespace echelon
