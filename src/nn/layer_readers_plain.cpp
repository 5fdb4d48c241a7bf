#include "base/error.h"
#include "graph/ops/batch_matmul.h"
#include "graph/ops/elementwise.h"
#include "graph/ops/permute.h"
#include "graph/ops/shape.h"
#include "nn/layer_readers.h"

namespace echelon::nn {

BuildLayer read_dropout(OptionReader& o) {
  return [p = real(o, "p", 0.5, 0, 0.999)](Net& net, In x) { return net.dropout(x[0], p); };
}

BuildLayer read_leaky_relu(OptionReader& o) {
  return [slope = real(o, "slope", 0.01)](Net& net, In x) { return net.leaky_relu(x[0], slope); };
}

BuildLayer read_elu(OptionReader& o) {
  return [alpha = real(o, "alpha", 1)](Net& net, In x) { return net.elu(x[0], alpha); };
}

BuildLayer read_upsample(OptionReader& o) {
  return [factor = small(o, "factor", 2, 1, 256)](Net& net, In x) { return net.upsample(x[0], factor); };
}

BuildLayer read_reshape(OptionReader& o) {
  auto shape = o.integers("shape", {-1}, -1, huge);
  if (o.require("shape", "which shape, without the batch?") && (shape.empty() || shape.size() >= Shape::max_rank)) {
    o.problem("shape", "must have from one to five numbers");
    shape = {-1};
  }
  return [shape](Net& net, In x) { return net.reshape(x[0], Shape(shape)); };
}

BuildLayer read_concat(OptionReader& o) {
  return [axis = small(o, "axis", 1, 1, Shape::max_rank - 1)](Net& net, In x) {
    return net.concat({x.begin(), x.end()}, axis);
  };
}

BuildLayer read_add(OptionReader&) {
  return [](Net& net, In x) { return net.add({x.begin(), x.end()}); };
}

BuildLayer read_multiply(OptionReader&) {
  return [](Net& net, In x) { return net.multiply({x.begin(), x.end()}); };
}

// --- what networks from elsewhere are made of (onnx/import.h) ---
BuildLayer read_scale(OptionReader& o) {
  return [factor = real(o, "factor", 1), offset = real(o, "offset", 0)](Net& net, In x) {
    const auto scope = net.block("scale");
    Value y = x[0];
    if (factor != 1) y = ops::scale(net.graph(), y, factor);
    return offset == 0 ? y : ops::offset(net.graph(), y, offset);
  };
}

// Both ends are ReLUs, which have gradients: least + relu(x - least), and most - relu(most - x).
BuildLayer read_clip(OptionReader& o) {
  return [least = real(o, "least", -1e30), most = real(o, "most", 1e30)](Net& net, In x) {
    const auto scope = net.block("clip");
    Graph& g = net.graph();
    Value y = x[0];
    if (least > -1e30f) y = ops::offset(g, ops::relu(g, ops::offset(g, y, -least)), least);
    if (most < 1e30f)
      y = ops::offset(g, ops::scale(g, ops::relu(g, ops::offset(g, ops::scale(g, y, -1), most)), -1), most);
    return y;
  };
}

BuildLayer read_slice(OptionReader& o) {
  const int axis = small(o, "axis", 1, 1, Shape::max_rank - 1);
  const std::int64_t begin = o.integer("begin", 0, -huge, huge), end = o.integer("end", huge, -huge, huge);
  return [=](Net& net, In x) {
    const auto scope = net.block("slice");
    if (axis >= net.shape(x[0]).rank()) bad_input("layer 'slice': {} has no axis {}", to_string(net.shape(x[0])), axis);
    const std::int64_t extent = net.shape(x[0])[axis];
    const auto from_start = [&](std::int64_t i) { return std::min(i < 0 ? i + extent : i, extent); };
    return ops::slice(net.graph(), x[0], axis, from_start(begin), from_start(end));
  };
}

BuildLayer read_permute(OptionReader& o) {
  const auto stated = o.integers("axes", {1}, 1, Shape::max_rank - 1);
  o.require("axes", "in which order do the dimensions come? The batch, 0, stays the first");
  std::vector<int> axes{0};
  for (const std::int64_t a : stated) axes.push_back(static_cast<int>(a));
  return [axes](Net& net, In x) {
    const auto scope = net.block("permute");
    return ops::permute(net.graph(), x[0], axes);
  };
}

BuildLayer read_matmul(OptionReader& o) {
  return [turned = o.flag("transpose", false)](Net& net, In x) {
    const auto scope = net.block("matmul");
    return ops::batch_matmul(net.graph(), x[0], x[1], false, turned);
  };
}

BuildLayer read_causal_mask(OptionReader&) {
  return [](Net& net, In x) {
    const auto scope = net.block("causal_mask");
    return ops::causal_mask(net.graph(), x[0]);
  };
}

}  // namespace echelon::nn
