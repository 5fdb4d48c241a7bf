// Rows for layers with weights, pooling and activations.
#include <array>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "onnx/import_rows.h"

namespace echelon::onnx {
namespace {

using Kind = Known::Kind;

std::vector<float> turned_matrix(const std::vector<float>& x, std::int64_t rows, std::int64_t cols) {
  std::vector<float> out(x.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c)
      out[static_cast<std::size_t>(c * rows + r)] = x[static_cast<std::size_t>(r * cols + c)];
  return out;
}

// y = x w^T + b; `weights` as stored, [in, out] unless `turned`.
Known linear_layer(NodeImport& n, const Known& x, const Tensor& weights, bool turned, const Tensor* bias,
                   const std::string& name) {
  if (weights.dims.size() != 2) n.refuse("its weights are not a matrix");
  const std::int64_t out = weights.dims[turned ? 0 : 1], in = weights.dims[turned ? 1 : 0];
  const Known y = n.import().layer("linear", name, {x}, {{"out", whole(out)}, {"bias", yes_or_no(bias != nullptr)}});
  std::vector<float> w = read_floats(weights);
  n.import().weight(y.layer, "weight", {out, in}, turned ? std::move(w) : turned_matrix(w, in, out));
  if (bias) {
    if (bias->elements() != out) n.refuse(fmt::format("a bias of {} numbers for {} outputs", bias->elements(), out));
    n.import().weight(y.layer, "bias", {out}, read_floats(*bias));
  }
  return y;
}

void gemm_in(NodeImport& n) {
  if (n.integer("transA", 0) != 0 || n.real("alpha", 1) != 1 || (n.has(2) && n.real("beta", 1) != 1))
    n.refuse("only x w + b is read: no transA, alpha and beta 1");
  n.out(linear_layer(n, n.value(0), n.constant(1), n.integer("transB", 0) != 0, n.has(2) ? &n.constant(2) : nullptr,
                     n.module({1, 2})));
}

// A product with known numbers is a linear layer, and the sum that follows it its bias.
void matmul_in(NodeImport& n) {
  if (!n.is_constant(1)) {
    const Known a = n.value(0), b = n.value(1);
    return n.out(n.import().layer("matmul", "", {a, b}));
  }
  const Known x = n.value(0);
  const auto& readers = n.import().readers[n.node().out.at(0)];
  if (readers.size() == 1 && readers[0] && readers[0]->type == "Add" && readers[0]->in.size() == 2 &&
      !readers[0]->out.empty()) {
    const Node& add = *readers[0];
    const std::string& other = add.in[add.in[0] == n.node().out[0] ? 1 : 0];
    const auto known = n.import().known.find(other);
    if (known != n.import().known.end() && known->second.is(Kind::constant) && known->second.tensor->dims.size() == 1 &&
        n.constant(1).dims.size() == 2 && known->second.tensor->dims[0] == n.constant(1).dims[1]) {
      const std::size_t dot = other.rfind('.');
      const bool named = dot != std::string::npos && other[0] != '/' && other.find("::") == std::string::npos;
      n.import().known[add.out.at(0)] = linear_layer(n, x, n.constant(1), false, known->second.tensor.get(),
                                                     named ? other.substr(0, dot) : n.module({1}));
      n.import().done.insert(&add);
      return;
    }
  }
  n.out(linear_layer(n, x, n.constant(1), false, nullptr, n.module({1})));
}

// pads = [begin.., end..]: the same on both sides, or refused.
Ints same_pads(NodeImport& n, std::size_t dims) {
  const std::string kind = n.text("auto_pad", "NOTSET");
  if (kind != "NOTSET" && kind != "VALID") n.refuse("auto_pad " + kind + " is not read: export with stated pads");
  const Ints pads = n.list("pads", Ints(2 * dims, 0));
  if (pads.size() != 2 * dims) n.refuse("pads of another rank");
  for (std::size_t i = 0; i < dims; ++i)
    if (pads[i] != pads[i + dims]) n.refuse("pads more on one side than on the other, which layers here cannot");
  return {pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(dims)};
}

Ints window_list(NodeImport& n, const std::string& name, std::size_t dims, std::int64_t fallback) {
  const Ints list = n.list(name, Ints(dims, fallback));
  if (list.size() != dims) n.refuse(name + " of another rank");
  for (const std::int64_t v : list)
    if (v < 0 || v > 1 << 20) n.refuse(fmt::format("{} = {} cannot be", name, v));
  return list;
}

void conv_in(NodeImport& n) {
  const Known x = n.value(0);
  const Tensor& w = n.constant(1);
  const bool across = n.node().type == "ConvTranspose";
  const std::size_t dims = w.dims.size() - 2;
  if (w.dims.size() < 3 || w.dims.size() > 4 || (across && dims != 2) || x.rank() != static_cast<int>(w.dims.size()))
    n.refuse(fmt::format("weights of {} dimensions are not read", w.dims.size()));
  const std::int64_t groups = n.integer("group", 1);
  if (groups < 1 || groups > 1 << 20) n.refuse(fmt::format("{} groups cannot be", groups));
  const std::int64_t out = across ? checked_multiply(w.dims[1], groups, "the channels of the weights") : w.dims[0];
  const Ints pads = same_pads(n, dims), strides = window_list(n, "strides", dims, 1),
             dilations = window_list(n, "dilations", dims, 1), kernel(w.dims.begin() + 2, w.dims.end());
  const auto one_or_list = [&](const Ints& v) { return dims == 1 ? whole(v[0]) : wholes(v); };
  std::vector<Setting> settings{{"out", whole(out)},
                                {"kernel", one_or_list(kernel)},
                                {"stride", one_or_list(strides)},
                                {"padding", one_or_list(pads)},
                                {"dilation", one_or_list(dilations)},
                                {"groups", whole(groups)},
                                {"bias", yes_or_no(n.has(2))}};
  if (across) settings.push_back({"output_padding", wholes(window_list(n, "output_padding", dims, 0))});
  const Known y = n.import().layer(dims == 1 ? "conv1d"
                                   : across  ? "conv_transpose2d"
                                             : "conv2d",
                                   n.module({1, 2}), {x}, settings);
  const Shape shape = dims == 1 ? Shape{w.dims[0], w.dims[1], 1, w.dims[2]} : Shape(w.dims);
  n.import().weight(y.layer, "weight", shape, read_floats(w));
  if (n.has(2)) n.import().weight(y.layer, "bias", {out}, read_floats(n.constant(2)));
  n.out(y);
}

void pool_in(NodeImport& n) {
  const Known x = n.value(0);
  const bool max = n.node().type == "MaxPool";
  const Ints kernel = n.list("kernel_shape", {});
  if (kernel.empty() || kernel.size() > 2) n.refuse("only windows of one or two dimensions are read");
  const Ints strides = window_list(n, "strides", kernel.size(), 1), pads = same_pads(n, kernel.size());
  if (n.integer("ceil_mode", 0) != 0) n.refuse("ceil_mode is not read");
  for (const std::int64_t d : n.list("dilations", {}))
    if (d != 1) n.refuse("dilations are not read");
  const auto both = [&](const Ints& v, std::int64_t first) { return wholes(v.size() == 2 ? v : Ints{first, v[0]}); };
  std::vector<Setting> settings{{"kernel", both(kernel, 1)}, {"stride", both(strides, 1)}, {"padding", both(pads, 0)}};
  if (!max) settings.push_back({"count_padding", yes_or_no(n.integer("count_include_pad", 0) != 0)});
  n.out(n.import().layer(max ? "max_pool" : "avg_pool", "", {x}, settings));
}

void global_pool_in(NodeImport& n) {
  const Known x = n.value(0);
  const Known y = n.import().layer("global_avg_pool", "", {x});
  Ints dims(static_cast<std::size_t>(x.rank()), 1);
  dims[0] = x.shape[0], dims[1] = x.shape[1];
  n.out(n.reshaped(y, dims));
}

void batch_norm_in(NodeImport& n) {
  const Known x = n.value(0);
  const Known y =
      n.import().layer("batch_norm", n.module({1, 2}), {x},
                       {{"eps", number(n.real("epsilon", 1e-5))}, {"rate", number(1 - n.real("momentum", 0.9))}});
  const char* names[] = {"weight", "bias", "running_mean", "running_var"};
  for (std::size_t i = 0; i < 4; ++i) {
    if (n.constant(i + 1).elements() != x.shape[1]) n.refuse("statistics for another number of channels");
    n.import().weight(y.layer, names[i], {x.shape[1]}, read_floats(n.constant(i + 1)));
  }
  n.out(y);
}

void layer_norm_in(NodeImport& n) {
  const Known x = n.value(0);
  const std::int64_t width = x.shape[-1];
  if (n.axis(n.integer("axis", -1), x.rank()) != x.rank() - 1) n.refuse("is read over the last dimension only");
  const Known y = n.import().layer("layer_norm", n.module({1, 2}), {x}, {{"eps", number(n.real("epsilon", 1e-5))}});
  const std::vector<float> zeros(static_cast<std::size_t>(width), 0);
  if (n.constant(1).elements() != width) n.refuse("a scale of another width");
  n.import().weight(y.layer, "weight", {width}, read_floats(n.constant(1)));
  n.import().weight(y.layer, "bias", {width}, n.has(2) ? read_floats(n.constant(2)) : zeros);
  n.out(y);
}

// Each channel of each sample by itself: a group norm with as many groups as channels.
void instance_norm_in(NodeImport& n) {
  const Known x = n.value(0);
  const std::int64_t channels = x.shape[1];
  const Known y = n.import().layer("group_norm", n.module({1, 2}), {x},
                                   {{"groups", whole(channels)}, {"eps", number(n.real("epsilon", 1e-5))}});
  for (std::size_t i = 1; i <= 2; ++i) {
    if (n.constant(i).elements() != channels) n.refuse("a scale for another number of channels");
    n.import().weight(y.layer, i == 1 ? "weight" : "bias", {channels}, read_floats(n.constant(i)));
  }
  n.out(y);
}

void lrn_in(NodeImport& n) {
  n.out(n.import().layer("local_response_norm", "", {n.value(0)},
                         {{"size", whole(n.integer("size", 5))},
                          {"alpha", number(n.real("alpha", 1e-4))},
                          {"beta", number(n.real("beta", 0.75))},
                          {"k", number(n.real("bias", 1))}}));
}

void dropout_in(NodeImport& n) {
  const double p = n.has(1) ? n.scalar(1).value_or(0.5) : n.real("ratio", 0.5);
  n.out(p > 0 && p < 1 ? n.import().layer("dropout", "", {n.value(0)}, {{"p", number(p)}}) : n.in(0));
}

template <char const* type>
void activation_in(NodeImport& n) {
  n.out(n.import().layer(type, "", {n.value(0)}));
}
constexpr char relu_type[] = "relu", sigmoid_type[] = "sigmoid", tanh_type[] = "tanh", softplus_type[] = "softplus";

void leaky_relu_in(NodeImport& n) {
  n.out(n.import().layer("leaky_relu", "", {n.value(0)}, {{"slope", number(n.real("alpha", 0.01))}}));
}
void elu_in(NodeImport& n) {
  n.out(n.import().layer("elu", "", {n.value(0)}, {{"alpha", number(n.real("alpha", 1))}}));
}

void clip_in(NodeImport& n) {
  std::vector<Setting> settings;
  const double least = n.has(1) ? n.scalar(1).value_or(-INFINITY) : n.real("min", -INFINITY),
               most = n.has(2) ? n.scalar(2).value_or(INFINITY) : n.real("max", INFINITY);
  if (least > -1e30) settings.push_back({"least", number(least)});
  if (most < 1e30) settings.push_back({"most", number(most)});
  n.out(n.import().layer("clip", "", {n.value(0)}, settings));
}

void softmax_in(NodeImport& n) {
  const Known x = n.value(0);
  if (n.axis(n.integer("axis", -1), x.rank()) != x.rank() - 1) n.refuse("is read over the last dimension only");
  n.out(n.import().layer("softmax", "", {x}));
}

constexpr auto layers_in = std::to_array<ImportRow>({
    {"Gemm", gemm_in},
    {"MatMul", matmul_in},
    {"Conv", conv_in},
    {"ConvTranspose", conv_in},
    {"MaxPool", pool_in},
    {"AveragePool", pool_in},
    {"GlobalAveragePool", global_pool_in},
    {"BatchNormalization", batch_norm_in},
    {"LayerNormalization", layer_norm_in},
    {"InstanceNormalization", instance_norm_in},
    {"LRN", lrn_in},
    {"Dropout", dropout_in},
    {"Relu", activation_in<relu_type>},
    {"Sigmoid", activation_in<sigmoid_type>},
    {"Tanh", activation_in<tanh_type>},
    {"Softplus", activation_in<softplus_type>},
    {"LeakyRelu", leaky_relu_in},
    {"Elu", elu_in},
    {"Clip", clip_in},
    {"Softmax", softmax_in},
});

}  // namespace

std::span<const ImportRow> layer_rows() { return layers_in; }

}  // namespace echelon::onnx
