#include "graph/ops/batch_norm_strips.h"

#include "base/error.h"
#include "graph/ops/slices.h"
#include "kernels/norm/batch_norm_parts.h"
#include "kernels/reduce.h"

namespace echelon::ops {

namespace {

using kernels::NormPart;

// What all strips have in common: the numbers in a channel of all of them, and eps.
struct NormWhole {
  double count = 0;
  float eps = 0;
  NormPart part(const Shape& x) const {
    return {.n = static_cast<std::size_t>(x[0]),
            .channels = static_cast<std::size_t>(x[1]),
            .pixels = static_cast<std::size_t>(x[2] * x[3]),
            .count = count,
            .eps = eps};
  }
};

Type channels_of(const Type& x) {
  if (x.shape.rank() != 4) bad_input("needs images [N, C, H, W], not {}", to_string(x.shape));
  return f32({x.shape[1]});
}

class RepeatChannels : public Op {
 public:
  explicit RepeatChannels(Shape shape) : shape_(shape) {}
  std::string_view name() const override { return "repeat_channels"; }
  std::vector<Type> infer(std::span<const Type>) const override { return {f32(shape_)}; }
  Kernel compile(const Operands& o) const override {
    return [p = NormWhole{}.part(shape_), d = o.in[0].f32(), dx = o.out[0].f32()](const StepContext&) {
      kernels::repeat_channels(p, d, dx);
    };
  }

 private:
  Shape shape_;
};

class ChannelSum : public Op {
 public:
  std::string_view name() const override { return "channel_sum"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {channels_of(in[0])}; }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {g.add_one(std::make_shared<RepeatChannels>(g.type(node.in[0]).shape), {d_out[0]})};
  }
  Kernel compile(const Operands& o) const override {
    const NormPart p = NormWhole{}.part(o.in[0].type.shape);
    return [e = kernels::ImageExtents{p.n, p.channels, p.pixels, 1}, x = o.in[0].f32(),
            y = o.out[0].f32()](const StepContext&) { kernels::channel_sum(x, Layout::plain, e, y); };
  }
};

class ChannelSquaresGrad : public Op {
 public:
  explicit ChannelSquaresGrad(NormWhole all) : all_(all) {}
  std::string_view name() const override { return "channel_squares_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape)}; }
  Kernel compile(const Operands& o) const override {
    return [p = all_.part(o.in[0].type.shape), x = o.in[0].f32(), total = o.in[1].f32(), d = o.in[2].f32(),
            dx = o.out[0].f32()](const StepContext&) { kernels::part_squares_grad(p, x, total, d, dx); };
  }

 private:
  NormWhole all_;
};

// (x, total) -> the squared distances from the mean, added up. The mean gets no gradient: over all strips it is zero.
class ChannelSquares : public Op {
 public:
  explicit ChannelSquares(NormWhole all) : all_(all) {}
  std::string_view name() const override { return "channel_squares"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {channels_of(in[0])}; }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    return {g.add_one(std::make_shared<ChannelSquaresGrad>(all_), {node.in[0], node.in[1], d_out[0]}), Value{}};
  }
  Kernel compile(const Operands& o) const override {
    return [p = all_.part(o.in[0].type.shape), x = o.in[0].f32(), total = o.in[1].f32(),
            y = o.out[0].f32()](const StepContext&) { kernels::part_squares(p, x, total, y); };
  }

 private:
  NormWhole all_;
};

// (x, gamma, total, squares, dy) -> dx, dgamma, dbeta, dtotal, dsquares
class NormaliseGrad : public Op {
 public:
  explicit NormaliseGrad(NormWhole all) : all_(all) {}
  std::string_view name() const override { return "normalise_grad"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    const Type channels = f32(in[1].shape);
    return {f32(in[0].shape), channels, channels, channels, channels};
  }
  int overwrites(int out) const override { return out == 0 ? 4 : -1; }
  Kernel compile(const Operands& o) const override {
    const kernels::NormPartGrad grad{o.out[0].f32(), o.out[1].f32(), o.out[2].f32(), o.out[3].f32(), o.out[4].f32()};
    return [p = all_.part(o.in[0].type.shape), x = o.in[0].f32(), gamma = o.in[1].f32(), total = o.in[2].f32(),
            squares = o.in[3].f32(), dy = o.in[4].f32(),
            grad](const StepContext&) { kernels::part_normalise_grad(p, x, gamma, total, squares, dy, grad); };
  }

 private:
  NormWhole all_;
};

// (x, gamma, beta, total, squares) -> y
class Normalise : public Op {
 public:
  explicit Normalise(NormWhole all) : all_(all) {}
  std::string_view name() const override { return "normalise"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    for (std::size_t i = 1; i < in.size(); ++i)
      if (!(in[i] == channels_of(in[0])))
        bad_input("input {} does not fit {}", to_string(in[0].shape), to_string(in[i].shape));
    return {f32(in[0].shape)};
  }
  std::vector<Value> gradient(Graph& g, const Node& node, std::span<const Value> d_out,
                              const std::vector<bool>&) const override {
    const auto d =
        g.add(std::make_shared<NormaliseGrad>(all_), {node.in[0], node.in[1], node.in[3], node.in[4], d_out[0]});
    return {d[0], d[1], d[2], d[3], d[4]};
  }
  Kernel compile(const Operands& o) const override {
    return [p = all_.part(o.in[0].type.shape), x = o.in[0].f32(), gamma = o.in[1].f32(), beta = o.in[2].f32(),
            total = o.in[3].f32(), squares = o.in[4].f32(),
            y = o.out[0].f32()](const StepContext&) { kernels::part_normalise(p, x, gamma, beta, total, squares, y); };
  }

 private:
  NormWhole all_;
};

// (total, squares) -> the contributions to the running mean and variance, weighted by the shard's samples
class ChannelStatistics : public Op {
 public:
  explicit ChannelStatistics(NormWhole all) : all_(all) {}
  std::string_view name() const override { return "channel_statistics"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {f32(in[0].shape), f32(in[0].shape)}; }
  Kernel compile(const Operands& o) const override {
    const double unbiased = all_.count > 1 ? all_.count - 1 : 1;
    return [count = all_.count, unbiased, n = o.out[0].stored(), total = o.in[0].f32(), squares = o.in[1].f32(),
            mean = o.out[0].f32(), variance = o.out[1].f32()](const StepContext& step) {
      for (std::size_t c = 0; c < n; ++c) {
        mean[c] = static_cast<float>(total[c] / count * step.share);
        variance[c] = static_cast<float>(squares[c] / unbiased * step.share);
      }
    };
  }

 private:
  NormWhole all_;
};

}  // namespace

std::vector<std::vector<Value>> batch_norm_in_strips(Graph& g, const std::vector<std::vector<Value>>& in, float eps) {
  NormWhole all{.count = 0, .eps = eps};
  for (const auto& of_slice : in) {
    const Type& x = g.type(of_slice[0]);
    all.count += static_cast<double>(x.elements() / x.shape[1]);
  }
  auto over_strips = [&](auto&& make) {
    std::vector<Value> addends;
    for (std::size_t s = 0; s < in.size(); ++s) {
      g.set_slice(static_cast<int>(s));
      addends.push_back(make(in[s][0]));
    }
    g.set_slice(-1);
    return tree_sum(g, addends);
  };
  const Value total = over_strips([&](Value x) { return g.add_one(std::make_shared<ChannelSum>(), {x}); });
  const Value squares = over_strips([&](Value x) {
    return g.add_one(std::make_shared<ChannelSquares>(all), {x, total});
  });
  const auto statistics = g.add(std::make_shared<ChannelStatistics>(all), {total, squares});
  std::vector<std::vector<Value>> out;
  for (std::size_t s = 0; s < in.size(); ++s) {
    g.set_slice(static_cast<int>(s));
    const Value y = g.add_one(std::make_shared<Normalise>(all), {in[s][0], in[s][1], in[s][2], total, squares});
    out.push_back({y, Value{}, Value{}, statistics[0], statistics[1]});
  }
  g.set_slice(-1);
  return out;
}

}  // namespace echelon::ops
