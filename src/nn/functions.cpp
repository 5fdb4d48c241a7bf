// The parts of Net that have no weights: shapes, activations, losses.
#include "base/checked.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/dropout.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/loss.h"
#include "graph/ops/permute.h"
#include "graph/ops/pool.h"
#include "graph/ops/shape.h"
#include "graph/ops/softmax.h"
#include "graph/size_limit.h"
#include "nn/layers.h"

namespace echelon::nn {
namespace {

ops::Pool pool(Size2 kernel, const PoolOptions& o) {
  const Size2 stride = o.stride.value_or(kernel);
  return {.kernel_h = kernel.h,
          .kernel_w = kernel.w,
          .stride_h = stride.h,
          .stride_w = stride.w,
          .pad_h = o.padding.h,
          .pad_w = o.padding.w,
          .count_padding = o.count_padding};
}

}  // namespace

Value Net::max_pool(Value x, Size2 kernel, const PoolOptions& o) {
  const auto scope = layer("max_pool");
  refuse_decoding("max_pool");
  return on_images("max_pool", x, kernel, o,
                   [&](Value image, const ops::Pool& p) { return ops::max_pool(graph_, image, p); });
}

Value Net::avg_pool(Value x, Size2 kernel, const PoolOptions& o) {
  const auto scope = layer("avg_pool");
  refuse_decoding("avg_pool");
  return on_images("avg_pool", x, kernel, o,
                   [&](Value image, const ops::Pool& p) { return ops::avg_pool(graph_, image, p); });
}

// A sequence is an image of one row.
Value Net::on_images(std::string_view kind, Value x, Size2 kernel, PoolOptions o,
                     const std::function<Value(Value, const ops::Pool&)>& run) {
  const Shape s = shape(x);
  if (s.rank() != 3) {
    need_rank(kind, x, 4, "images [N, C, H, W] or sequences [N, C, T]");
    return run(x, pool(kernel, o));
  }
  kernel.h = 1, o.padding.h = 0;
  if (o.stride) o.stride->h = 1;
  const Value y = run(ops::reshape(graph_, x, {s[0], s[1], 1, s[2]}), pool(kernel, o));
  return ops::reshape(graph_, y, {s[0], s[1], shape(y)[3]});
}

Value Net::global_avg_pool(Value x) {
  const auto scope = layer("global_avg_pool");
  refuse_decoding("global_avg_pool");
  const Shape s = shape(x);
  if (s.rank() == 3) x = ops::reshape(graph_, x, {s[0], s[1], 1, s[2]});
  need_rank("global_avg_pool", x, 4, "images [N, C, H, W] or sequences [N, C, T]");
  return ops::global_avg_pool(graph_, x);
}

// Repeats every pixel along W, then every row along H, by joining copies on an axis of length one.
Value Net::upsample(Value x, int factor) {
  const auto scope = layer("upsample");
  refuse_decoding("upsample");
  need_rank("upsample", x, 4, "images [N, C, H, W]");
  if (factor < 1) refuse("upsample", fmt::format("cannot enlarge {} by {}", to_string(shape(x)), factor));
  if (factor == 1) return x;
  const std::int64_t n = shape(x)[0], c = shape(x)[1], h = shape(x)[2], w = shape(x)[3];
  const auto copies = static_cast<std::size_t>(factor);
  const Shape large{n, c, checked_multiply<std::int64_t>(h, factor, "the enlarged height"),
                    checked_multiply<std::int64_t>(w, factor, "the enlarged width")};
  try {
    check_size(f32(large));  // before one node is made for each copy
  } catch (const TooLarge& problem) {
    throw TooLarge(fmt::format("layer '{}' (upsample): {}", graph_.layer(), problem.what()));
  }
  x = ops::reshape(graph_, x, {n * c * h, w, 1});
  x = ops::concat(graph_, std::vector<Value>(copies, x), 2);
  x = ops::reshape(graph_, x, {n * c * h, 1, w * factor});
  x = ops::concat(graph_, std::vector<Value>(copies, x), 1);
  return ops::reshape(graph_, x, large);
}

Value Net::flatten(Value x) {
  const auto scope = layer("flatten");
  refuse_decoding("flatten");
  return ops::flatten(graph_, x);
}

Value Net::reshape(Value x, Shape rest) {
  const auto scope = layer("reshape");
  refuse_decoding("reshape");
  if (rest.rank() + 1 > Shape::max_rank) refuse("reshape", "cannot make more than six dimensions");
  std::vector<std::int64_t> dims{shape(x)[0]};
  dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
  return ops::reshape(graph_, x, Shape(dims));
}

Value Net::concat(const std::vector<Value>& xs, int axis) {
  const auto scope = layer("concat");
  if (axis == 1) refuse_decoding("concat");
  return ops::concat(graph_, xs, axis);
}

Value Net::add(const std::vector<Value>& xs) {
  const auto scope = layer("add");
  if (xs.empty()) refuse("add", "needs at least one value");
  Value sum = xs[0];
  for (std::size_t i = 1; i < xs.size(); ++i) sum = ops::add(graph_, sum, xs[i]);
  return sum;
}

Value Net::multiply(const std::vector<Value>& xs) {
  const auto scope = layer("multiply");
  if (xs.empty()) refuse("multiply", "needs at least one value");
  Value product = xs[0];
  for (std::size_t i = 1; i < xs.size(); ++i)
    product =
        shape(xs[i]) == shape(product) ? ops::mul(graph_, product, xs[i]) : ops::scale_rows(graph_, product, xs[i]);
  return product;
}

Value Net::transpose(Value x) {
  const auto scope = layer("transpose");
  refuse_decoding("transpose");
  need_rank("transpose", x, 3, "sequences [N, T, d]");
  return ops::transpose(graph_, x);
}

Value Net::dropout(Value x, float p) {
  const auto scope = layer("dropout");
  if (!(p >= 0 && p < 1)) refuse("dropout", fmt::format("needs a probability in [0, 1), but got {}", p));
  return p == 0 ? x : ops::dropout(graph_, x, p);
}

Value Net::relu(Value x) {
  const auto scope = layer("relu");
  return ops::relu(graph_, x);
}

Value Net::leaky_relu(Value x, float slope) {
  const auto scope = layer("leaky_relu");
  return ops::leaky_relu(graph_, x, slope);
}

Value Net::gelu(Value x) {
  const auto scope = layer("gelu");
  return ops::gelu(graph_, x);
}

Value Net::silu(Value x) {
  const auto scope = layer("silu");
  return ops::mul(graph_, x, ops::sigmoid(graph_, x));
}

Value Net::sigmoid(Value x) {
  const auto scope = layer("sigmoid");
  return ops::sigmoid(graph_, x);
}

Value Net::tanh(Value x) {
  const auto scope = layer("tanh");
  return ops::tanh(graph_, x);
}

Value Net::softplus(Value x) {
  const auto scope = layer("softplus");
  return ops::softplus(graph_, x);
}

Value Net::elu(Value x, float alpha) {
  const auto scope = layer("elu");
  return ops::elu(graph_, x, alpha);
}

Value Net::softmax(Value x) {
  const auto scope = layer("softmax");
  return ops::softmax(graph_, x);
}

Classified Net::cross_entropy(Value logits, Value targets, float label_smoothing) {
  return weighted_cross_entropy(logits, targets, label_smoothing, {});
}

Classified Net::weighted_cross_entropy(Value logits, Value targets, float label_smoothing,
                                       const ops::ClassWeighting& weighting) {
  const auto scope = layer("cross_entropy");
  const Shape scored = shape(logits);
  if (scored.rank() < 1) refuse("cross_entropy", "needs logits [.., classes], but they are " + to_string(scored));
  const std::int64_t rows = scored.elements() / std::max<std::int64_t>(scored[-1], 1);
  if (shape(targets).elements() != rows)
    refuse("cross_entropy", fmt::format("logits {} need {} targets, but there are {}", to_string(scored), rows,
                                        to_string(shape(targets))));
  if (scored.rank() != 2) logits = ops::reshape(graph_, logits, {rows, scored[-1]});
  if (shape(targets).rank() != 1) targets = ops::reshape(graph_, targets, {rows});
  const auto result = ops::weighted_cross_entropy(graph_, logits, targets, label_smoothing, weighting);
  return {result.loss, result.correct};
}

Value Net::mse(Value x, Value target) {
  const auto scope = layer("mse");
  return ops::distance_loss(graph_, ops::Distance::mse, x, target);
}

Value Net::l1(Value x, Value target) {
  const auto scope = layer("l1");
  return ops::distance_loss(graph_, ops::Distance::l1, x, target);
}

Value Net::huber(Value x, Value target, float delta) {
  const auto scope = layer("huber");
  return ops::distance_loss(graph_, ops::Distance::huber, x, target, delta);
}

Value Net::quantile_loss(Value x, Value target, const std::vector<float>& levels) {
  const auto scope = layer("quantile");
  return ops::quantile_loss(graph_, x, target, levels);
}

Value Net::bce_with_logits(Value x, Value target) {
  const auto scope = layer("bce_with_logits");
  return ops::distance_loss(graph_, ops::Distance::bce_with_logits, x, target);
}

}  // namespace echelon::nn
