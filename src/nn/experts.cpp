// The part of Net that is a mixture of experts.
#include <cmath>

#include "graph/ops/elementwise.h"
#include "graph/ops/experts.h"
#include "graph/ops/linear.h"
#include "graph/ops/shape.h"
#include "graph/ops/softmax.h"
#include "nn/layers.h"

namespace echelon::nn {

Value Net::moe(Value x, const MoeOptions& o) {
  const auto scope = layer("moe");
  refuse_decoding("moe");  // whether an expert has room depends on the other rows
  if (shape(x).rank() < 2) refuse("moe", "needs features [.., n], but its input is " + to_string(shape(x)));
  if (o.experts < 1 || o.top < 1 || o.top > 2 || o.top > o.experts)
    refuse("moe", fmt::format("cannot send rows to {} of {} experts: 1 or 2 are possible", o.top, o.experts));
  const std::int64_t width = shape(x)[-1], rows = shape(x).elements() / width, experts = o.experts;
  const std::int64_t hidden = o.hidden > 0 ? o.hidden : 4 * width;
  const double fair = static_cast<double>(rows) * o.top / static_cast<double>(experts);
  const auto capacity =
      std::min(rows, std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(fair * o.capacity))));
  struct Weights {
    Value weight, bias;
  };
  const auto weights = [&](const std::string& name, std::int64_t in, std::int64_t out,
                           const std::optional<Init>& init) {
    return Weights{parameter(name + ".weight", {experts, out, in}, start(init, in, out)),
                   parameter(name + ".bias", {experts, out}, bias_start(init, in), false)};
  };
  const Value router = parameter("router.weight", {experts, width}, start(o.init, width, experts));
  const Weights up = weights("up", width, hidden, o.init);
  const Weights down = weights("down", hidden, width, o.out_init ? o.out_init : o.init);

  // Three layers in the eyes of a plan: rows leave from the first for the ranks that have their experts, and come back
  // to the third.
  const auto in_layer = [&](const char* name, const auto& make) {
    const Graph::Scope part(graph_, name);
    return make();
  };
  Value probabilities;
  ops::Routes routes;
  Value y = in_layer("route", [&] {
    const Value flat = ops::reshape(graph_, x, {rows, width});
    probabilities = ops::softmax(graph_, ops::matmul(graph_, flat, router, false, true));
    routes = ops::route(graph_, probabilities, o.top, capacity);
    return ops::dispatch(graph_, flat, routes.slots, experts, capacity);
  });
  y = in_layer("experts", [&] {
    const Value h = ops::gelu(graph_, ops::expert_linear(graph_, y, up.weight, up.bias));
    return ops::expert_linear(graph_, h, down.weight, down.bias);
  });
  y = in_layer("combine",
               [&] { return ops::reshape(graph_, ops::combine(graph_, y, routes.slots, routes.gates), shape(x)); });

  // Switch: experts times the sum over them of (share of first choices) * (mean probability); one if all are alike.
  // The loss of a micro-batch is a sum over its rows, so the mean becomes a sum.
  if (training() && o.balance > 0) {
    const Graph::Scope part(graph_, "route");
    const Value mass = ops::reshape(graph_, ops::sum_to_tail(graph_, probabilities, {experts}), {1, experts});
    const Value along = ops::matmul(graph_, mass, ops::reshape(graph_, routes.load, {experts, 1}));
    extra_losses_->push_back(
        ops::scale(graph_, ops::reshape(graph_, along, {1}), o.balance * static_cast<float>(experts)));
  }
  return y;
}

}  // namespace echelon::nn
