#pragma once
// Layers: a short way to write networks. A Net adds layers to a graph; each call is one layer, which gets a name, makes
// its parameters ("conv1.weight", "conv1.bias") and returns its output.
//
//   Value lenet5(nn::Net& net, Value x) {
//     x = net.max_pool(net.relu(net.conv2d(x, 6, {.kernel = 5, .padding = 2})), 2);
//     x = net.max_pool(net.relu(net.conv2d(x, 16, {.kernel = 5})), 2);
//     x = net.relu(net.linear(net.flatten(x), 120));
//     x = net.relu(net.linear(x, 84));
//     return net.linear(x, 10);
//   }
//
// Names: `net.named("stem").conv2d(...)` names that layer; a layer without one is called after its kind ("conv",
// "conv2", ...). `auto block = net.block("block1");` puts "block1." before the names of the layers that follow, until
// it goes out of scope. Two layers of one Net must not have the same name. Two Nets over one graph give the same names
// again: call one function with both, and the two copies share their parameters (a GAN's discriminator).
//
// Starts: parameters start as in PyTorch unless a layer (`.init = nn::he_normal()`) or the whole Net (`use_init`) says
// otherwise; a layer whose weights have a stated start has zero biases.
//
// A shape that does not fit throws BadInput, naming the layer and the shapes. A Net is a handle: copies add to the same
// graph, which must outlive them, and share the names. Not thread-safe.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/ops/loss.h"
#include "graph/ops/pool.h"
#include "graph/ops/recurrent.h"
#include "nn/initialise.h"

namespace echelon::nn {

// Height and width; one number means both.
struct Size2 {
  int h, w;
  constexpr Size2(int both) : h(both), w(both) {}  // NOLINT: meant to convert
  constexpr Size2(int height, int width) : h(height), w(width) {}
};

struct LinearOptions {
  bool bias = true;
  bool weight_norm = false;  // w = gain v / |v| for each output (Salimans and Kingma 2016)
  std::optional<Init> init{};
};

struct Conv2dOptions {
  Size2 kernel = 3;
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 dilation = 1;
  int groups = 1;
  bool bias = true;
  bool weight_norm = false;
  std::optional<Init> init{};
};

struct Conv1dOptions {
  int kernel = 3, stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
  std::optional<Init> init{};
};

struct ConvTransposeOptions {
  Size2 kernel = 3;
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 output_padding = 0;  // rows and columns added at the end, to tell apart extents that a stride makes equal
  Size2 dilation = 1;
  int groups = 1;
  bool bias = true;
  std::optional<Init> init{};
};

struct PoolOptions {
  std::optional<Size2> stride{};  // the kernel, if not said
  Size2 padding = 0;
  bool count_padding = true;  // average: whether the padding counts as zeros
};

struct BatchNormOptions {
  float eps = 1e-5f;
  float rate = 0.1f;  // of the running statistics (PyTorch's "momentum")
};

struct ResponseNormOptions {
  int size = 5;
  float alpha = 1e-4f, beta = 0.75f, k = 1;
};

struct RecurrentOptions {
  int layers = 1;
  float dropout = 0;   // between layers
  bool carry = false;  // truncated BPTT: the state flows into the next step, gradients do not
  bool relu = false;   // rnn only: ReLU instead of tanh
  bool bias = true;
  bool bidirectional = false;  // a second cell reads from the end; features are twice `hidden`. Not with carry
  std::optional<Init> init{};
};

struct Sequence {
  Value all;   // [batch, time, hidden]
  Value last;  // [batch, hidden]: after the last step
};

struct AttentionOptions {
  int heads = 1;
  bool causal = false;
  bool bias = true;
  std::optional<Init> out_init{};  // of the output projection (GPT-2 makes it smaller)
};

struct MoeOptions {
  int experts = 8;
  std::int64_t hidden = 0;  // of each expert; 0: four times the width of its input
  int top = 2;              // to how many experts a row goes, 1 or 2
  float capacity = 1.25f;   // room of an expert, as a multiple of its fair share of the rows
  float balance = 0.01f;    // the weight of the loss that spreads the rows over the experts
  std::optional<Init> init{}, out_init{};
};

// How a network is built that sees one position at a time: where that position is (i32[1]) and how many there can be.
// Attention then keeps the keys and values of the positions before as a carry; layers that mix positions in any other
// way refuse.
struct Decoding {
  Value position;
  std::int64_t room = 0;
};

struct Classified {
  Value loss;     // [1], summed over the samples
  Value correct;  // [1], how many were right
};

class Net {
 public:
  explicit Net(Graph& graph)
      : graph_(graph),
        names_(std::make_shared<std::map<std::string, int>>()),
        extra_losses_(std::make_shared<std::vector<Value>>()) {}

  Graph& graph() { return graph_; }
  bool training() const { return graph_.training(); }
  const Shape& shape(Value x) const { return graph_.type(x).shape; }

  [[nodiscard]] Net named(const std::string& name) const;
  [[nodiscard]] Graph::Scope block(const std::string& name) { return {graph_, name}; }
  void use_init(std::optional<Init> init) { init_ = init; }
  void decode(const Decoding& decoding) { decoding_ = decoding; }
  // A parameter of the layer or block that is open now, for layers of your own: "<layer>.<name>".
  Value parameter(const std::string& name, Shape shape, const Init& init, bool decays = true);

  // --- layers with weights ---
  Value linear(Value x, std::int64_t out, const LinearOptions& options = {});  // [.., in] -> [.., out]
  Value conv2d(Value x, std::int64_t out, const Conv2dOptions& options = {});  // [N, C, H, W]
  Value depthwise(Value x, Conv2dOptions options = {});                        // each channel its own kernel
  Value conv1d(Value x, std::int64_t out, const Conv1dOptions& options = {});  // [N, C, T]
  Value conv_transpose2d(Value x, std::int64_t out,
                         const ConvTransposeOptions& options = {});  // enlarges by its stride
  // [N, C, H, W]: as conv2d without groups and dilation, but every place has weights of its own.
  Value locally_connected(Value x, std::int64_t out, const Conv2dOptions& options = {});
  Value embedding(Value ids, std::int64_t rows, std::int64_t width);  // i32[..] -> [.., width]
  Value positions(Value x);                                           // [N, T, d] + a learned [T, d]
  Value attention(Value x, const AttentionOptions& options);          // self-attention, [N, T, d]
  // x[N, T, d] looks at memory[N, S, e]; as x.
  Value cross_attention(Value x, Value memory, const AttentionOptions& options);
  // A mixture of experts (Shazeer et al. 2017, GShard, Switch): two linear layers with GELU between them, one pair for
  // each expert; a router sends every row [.., d] to the most probable ones. Rows beyond an expert's room give zeros.
  Value moe(Value x, const MoeOptions& options = {});
  Sequence rnn(Value x, std::int64_t hidden, const RecurrentOptions& options = {});  // x: [batch, time, in]
  Sequence lstm(Value x, std::int64_t hidden, const RecurrentOptions& options = {});
  Sequence gru(Value x, std::int64_t hidden, const RecurrentOptions& options = {});

  // Tied weights: a table that looks ids up at the start and turns features into scores at the end.
  Value table(std::int64_t rows, std::int64_t width);
  Value embedding(Value ids, Value table);
  Value scores(Value x, Value table);  // [.., width] -> [.., rows]

  // --- normalisation and noise ---
  // [N, C, H, W], [N, C, T] or [N, C]. In training it sees one logical shard of the batch, not the whole batch.
  Value batch_norm(Value x, const BatchNormOptions& options = {});
  Value group_norm(Value x, int groups, float eps = 1e-5f);  // [N, C, ...]
  Value layer_norm(Value x, float eps = 1e-5f);              // over the last dimension
  Value local_response_norm(Value x, const ResponseNormOptions& options = {});
  Value dropout(Value x, float p);

  // --- shape ---
  // Pools take [N, C, H, W], or [N, C, T] with the kernel's width.
  Value max_pool(Value x, Size2 kernel, const PoolOptions& options = {});
  Value avg_pool(Value x, Size2 kernel, const PoolOptions& options = {});
  Value global_avg_pool(Value x);       // [N, C, H, W] or [N, C, T] -> [N, C]
  Value upsample(Value x, int factor);  // each pixel becomes factor x factor of them
  Value flatten(Value x);               // [N, ...] -> [N, rest]
  Value reshape(Value x, Shape shape);  // without the batch: [N, ...] -> [N, shape...]
  Value transpose(Value x);             // [N, T, d] -> [N, d, T]
  Value concat(const std::vector<Value>& xs, int axis = 1);
  // The product of all. Shapes are equal, or the beginning of the first one's: [N, C, H, W] times a gate [N, C].
  Value multiply(const std::vector<Value>& xs);
  Value add(Value a, Value b) { return add({a, b}); }
  Value add(const std::vector<Value>& xs);  // all of one shape
  template <typename F>
  Value residual(Value x, F&& branch) {  // x + branch(x)
    const Value y = branch(x);
    return add(x, y);
  }

  // --- activations ---
  Value relu(Value x);
  Value leaky_relu(Value x, float slope = 0.01f);
  Value gelu(Value x);
  Value silu(Value x);  // x * sigmoid(x)
  Value sigmoid(Value x);
  Value tanh(Value x);
  Value softplus(Value x);
  Value elu(Value x, float alpha = 1);
  Value softmax(Value x);  // over the last dimension

  // What layers want added to the loss while training (moe's balance), [1] each.
  const std::vector<Value>& extra_losses() const { return *extra_losses_; }

  // --- losses: each a sum over the samples, [1] ---
  Classified cross_entropy(Value logits, Value targets, float label_smoothing = 0);  // logits [.., classes]
  Classified weighted_cross_entropy(Value logits, Value targets, float label_smoothing,
                                    const ops::ClassWeighting& weighting);
  Value mse(Value x, Value target);
  Value l1(Value x, Value target);
  Value huber(Value x, Value target, float delta = 1);
  Value bce_with_logits(Value x, Value target);
  Value quantile_loss(Value x, Value target, const std::vector<float>& levels);  // [N, targets * levels], [N, targets]

 private:
  Graph::Scope layer(const std::string& kind);
  Init start(const std::optional<Init>& asked, std::int64_t fan_in, std::int64_t fan_out) const;
  Init bias_start(const std::optional<Init>& asked, std::int64_t fan_in) const;
  Value weight(Shape shape, const Init& init, bool weight_norm);
  Value on_images(std::string_view kind, Value x, Size2 kernel, PoolOptions options,
                  const std::function<Value(Value, const ops::Pool&)>& run);
  Value attend_before(Value qkv, const AttentionOptions& options);
  Sequence recurrent_pass(ops::Cell cell, Value x, std::int64_t hidden, const RecurrentOptions& o,
                          const std::string& suffix);
  Sequence recurrent(ops::Cell cell, const std::string& kind, Value x, std::int64_t hidden, const RecurrentOptions& o);
  [[noreturn]] void refuse(std::string_view kind, const std::string& text) const;
  // Of a layer that mixes positions: it cannot see them one at a time.
  void refuse_decoding(std::string_view kind) const;
  void need_rank(std::string_view kind, Value x, int rank, std::string_view what) const;

  Graph& graph_;
  std::optional<Init> init_;
  std::optional<Decoding> decoding_;
  std::string name_;  // of the layer that this handle adds; empty: after its kind
  // The names of all layers, blocks included; the number that was last put behind each to make another one of it.
  std::shared_ptr<std::map<std::string, int>> names_;
  std::shared_ptr<std::vector<Value>> extra_losses_;
};

}  // namespace echelon::nn
