#include "parallel/order.h"

#include <array>

#include "parallel/composition.h"

namespace echelon {

namespace {

std::size_t bucket_bytes(OptionReader& options, std::int64_t usual) {
  return static_cast<std::size_t>(options.integer("bytes", usual, 64, std::int64_t{1} << 40));
}

// A message of less costs more in meetings than it hides.
Order make_backward(OptionReader& o) { return {.kind = Order::Kind::backward, .bytes = bucket_bytes(o, 128 << 10)}; }
Order make_whole(OptionReader&) { return {.kind = Order::Kind::whole}; }
Order make_fusion(OptionReader& o) { return {.kind = Order::Kind::fusion, .bytes = bucket_bytes(o, 64 << 20)}; }
Order make_priority(OptionReader& o) { return {.kind = Order::Kind::priority, .bytes = bucket_bytes(o, 256 << 10)}; }
Order make_enforced(OptionReader& o) { return {.kind = Order::Kind::enforced, .bytes = bucket_bytes(o, 256 << 10)}; }
Order make_magnitude(OptionReader& o) {
  return {.kind = Order::Kind::magnitude, .bytes = bucket_bytes(o, 16 << 10), .rate = o.number("rate", 0.5, 1e-4, 1)};
}

}  // namespace

const std::vector<OrderPart>& order_parts() {
  static const std::vector<OrderPart> rows{
      {{"backward",
        "as soon as it is ready, while lower layers still run",
        {{"bytes", "131072", "of a bucket at least"}}},
       make_backward},
      {{"whole", "all of it after backward; the default where nothing can leave earlier", {}}, make_whole},
      {{"fusion",
        "the same in larger buckets: small tensors wait for each other",
        {{"bytes", "67108864", "of a bucket at least"}}},
       make_fusion},
      {{"priority", "in slices, those of the first layers first", {{"bytes", "262144", "of a slice"}}}, make_priority},
      {{"enforced", "the same order on all workers, from the graph", {{"bytes", "262144", "of a slice"}}},
       make_enforced},
      {{"magnitude",
        "the most significant first",
        {{"bytes", "16384", "of a slice"}, {"rate", "0.5", "of the model's bytes that leave in a step"}}},
       make_magnitude},
  };
  return rows;
}

const char* to_text(Order::Kind kind) {
  constexpr std::array names{"backward", "whole", "fusion", "priority", "enforced", "magnitude"};
  return names[static_cast<std::size_t>(kind)];
}

Order read_order(OptionReader& options, Order::Kind usual) {
  const Order order = chosen_row(order_parts(), options, to_text(usual)).make(options);
  options.done();
  return order;
}

void Order::accepts(const Composition&, const CompositionFacts&, Problems&) const {}

}  // namespace echelon
