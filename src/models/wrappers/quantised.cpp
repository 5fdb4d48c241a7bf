#include "models/wrappers/quantised.h"

#include <array>

#include "base/error.h"
#include "graph/gradient.h"
#include "graph/ops/autoflex.h"
#include "graph/ops/quantise.h"
#include "graph/ops/round_errors.h"
#include "graph/passes/quantise.h"
#include "models/wrappers/halp.h"
#include "nn/layers.h"

namespace echelon::models {
namespace {

constexpr int whole = 32;  // bits of a number that is left alone

struct Bits {
  int usual, least, most;  // besides 32, unless `always`
  bool always = false;
};

struct Scheme {
  const char* name;
  Bits weights, activations;
  bool ends;                                // whether its paper quantises the first and last layer too
  bool network_input;                       // and the network's input
  Quantisers (*make)(const Quantisation&);  // null: no layer by layer quantiser
};

// Empty: they stay as they are.
Quantisers::Maker rounded_errors(const Quantisation& q, const Quantisers::Maker& maker) {
  return q.errors_bits == whole ? Quantisers::Maker{} : maker;
}

Quantisers dorefa(const Quantisation& q) {
  return {.weights = [q](Graph& g, Value w) { return ops::dorefa_weights(g, w, q.weights_bits, q.keep_scale); },
          .activations = [q](Graph& g, Value x) { return ops::dorefa_activations(g, x, q.activations_bits); },
          .errors = rounded_errors(q, [q](Graph& g, Value y) { return ops::dorefa_errors(g, y, q.errors_bits); })};
}

// The layer of batch norm in front of a sign, under the name of the layer that reads the sign: "conv2.before_sign".
constexpr const char* norm_layer = "before_sign";

bool is_batch_norm(const Graph& g, Value x) {
  const ValueInfo& info = g.info(x);
  return info.source == ValueInfo::Source::node &&
         g.nodes()[static_cast<std::size_t>(info.producer)].op->name().starts_with("batch_norm");
}

// A sign keeps nothing of a number's size, so what is above zero, and where the gradient passes, is all that counts:
// batch norm keeps both in range. A network that has it there already needs no second one.
Value sign_of_normalised(Graph& g, Value x) {
  if (is_batch_norm(g, x)) return ops::binary_activations(g, x);
  const Shape& shape = g.type(x).shape;
  if (shape.rank() != 4 && shape.rank() != 2)
    bad_input("quantise.batch_norm takes [N, C, H, W] and [N, C], but layer '{}' reads {}: set it to false", g.layer(),
              to_string(shape));
  x = nn::Net(g).named(norm_layer).batch_norm(x);
  return ops::binary_activations(g, x);
}

Quantisers bnn(const Quantisation& q) {
  return {.weights = [q](Graph& g, Value w) { return ops::binary_weights(g, w, q.keep_scale); },
          .activations = q.batch_norm ? sign_of_normalised : ops::binary_activations,
          .skip_relu = true};
}

Quantisers ternary(const Quantisation&) { return {.weights = ops::ternary_weights, .activations = {}}; }

// The exponent of the largest number at hand, or (`predict`, while training) one from earlier steps.
Value flexpoint_number(Graph& g, Value x, int bits, bool predict, const char* name) {
  return predict && g.training() ? ops::autoflex(g, x, bits, name) : ops::shared_exponent(g, x, bits);
}

Quantisers flexpoint(const Quantisation& q) {
  return {
      .weights = [q](Graph& g, Value w) { return flexpoint_number(g, w, q.weights_bits, q.predict, "weights_peak"); },
      .activations = [q](Graph& g,
                         Value x) { return flexpoint_number(g, x, q.activations_bits, q.predict, "input_peak"); },
      .errors = rounded_errors(q, [q](Graph& g, Value y) { return ops::autoflex_errors(g, y, q.errors_bits); })};
}

Quantisers fixed(const Quantisation& q) {
  return {
      .weights = [q](Graph& g, Value w) { return ops::fixed_point(g, w, q.weights_bits, q.weights_fraction, true); },
      .activations = [q](Graph& g,
                         Value x) { return ops::fixed_point(g, x, q.activations_bits, q.activations_fraction, false); },
      .errors = rounded_errors(
          q, [q](Graph& g, Value y) { return ops::fixed_point_errors(g, y, q.errors_bits, q.errors_fraction); })};
}

constexpr auto schemes = std::to_array<Scheme>({
    {"dorefa", {1, 1, 16}, {2, 1, 16}, false, false, dorefa},
    {"bnn", {1, 1, 1}, {1, 1, 1}, false, false, bnn},
    {"ternary", {2, 2, 2, true}, {32, 32, 32, true}, true, false, ternary},
    {"flexpoint", {16, 2, 24}, {16, 2, 24}, true, true, flexpoint},
    {"fixed", {16, 2, 24}, {16, 2, 24}, true, true, fixed},
    {"halp", {8, 2, 24, true}, {32, 32, 32, true}, true, false, nullptr},  // models/wrappers/halp.h
});

const Scheme& scheme_of(const std::string& name) {
  for (const Scheme& s : schemes)
    if (name == s.name) return s;
  bad_input("there is no quantisation '{}'", name);
}

int read_bits(OptionReader& r, const std::string& key, const Bits& bits) {
  const auto given = static_cast<int>(r.integer(key, bits.usual, 1, whole));
  if ((given >= bits.least && given <= bits.most) || (given == whole && !bits.always)) return given;
  const std::string range =
      bits.least == bits.most ? fmt::format("{}", bits.least) : fmt::format("{} to {}", bits.least, bits.most);
  r.problem(key, fmt::format("= {}, but this scheme has {}{}", given, range,
                             bits.always ? " only" : "; 32 leaves them as they are"));
  return bits.usual;
}

class Quantised : public Model {
 public:
  Quantised(std::unique_ptr<Model> model, const Quantisation& how)
      : Model(model->name(), model->inputs()), model_(std::move(model)) {
    const Scheme& scheme = scheme_of(how.scheme);
    with_ = scheme.make(how);
    if (how.weights_bits == whole) with_.weights = {};
    if (how.activations_bits == whole) with_.activations = {};
    with_.network_input = scheme.network_input;
    // The same layers in all graphs of the model: which ones are the ends is decided in one of them.
    const std::vector<std::string> layers = layer_weights(model_->training(1)[0].graph);
    if (!how.ends && !layers.empty()) with_.exempt = {layers.front(), layers.back()};
    if (layers.size() <= with_.exempt.size())
      bad_input("quantise.scheme = \"{}\" finds no layer to quantise in {}: it takes linear layers and convolutions{}",
                how.scheme, name(),
                layers.empty() ? "" : ", but not the first and the last; set quantise.ends = true to take those too");
    if (!how.batch_norm) return;
    if (model_->training(1).size() > 1)  // it would have to rest in the phases that do not train its layer
      bad_input("quantise.batch_norm cannot be added to {}, which trains its parts in turn: set it to false", name());
    quantise(model_->evaluation(1), with_);  // refuses what batch norm cannot take, before anything runs
  }

  Task task() const override { return model_->task(); }
  std::int64_t context() const override { return model_->context(); }
  std::vector<Phase> training(std::int64_t samples) const override {
    std::vector<Phase> phases = model_->training(samples);
    for (Phase& phase : phases) {
      std::set<std::string> resting;  // what the quantisers add is trained
      for (std::size_t i = 0; i < phase.graph.parameters().size(); ++i)
        if (!phase.graph.contributions()[i]) resting.insert(phase.graph.parameters()[i].name);
      phase.graph = quantise(without_backward(phase.graph), with_);
      differentiate(phase.graph, phase.graph.outputs().at("loss"),
                    [&](const Parameter& p) { return !resting.contains(p.name); });
    }
    return phases;
  }
  Graph evaluation(std::int64_t samples) const override { return quantise(model_->evaluation(samples), with_); }
  Graph prediction(std::int64_t samples) const override { return quantise(model_->prediction(samples), with_); }

 private:
  std::unique_ptr<Model> model_;
  Quantisers with_;
};

}  // namespace

std::vector<std::string> quantisation_schemes() {
  std::vector<std::string> names;
  for (const Scheme& s : schemes) names.emplace_back(s.name);
  return names;
}

std::optional<Quantisation> read_quantisation(OptionReader& model) {
  if (!model.has("quantise")) return std::nullopt;
  OptionReader r = model.table("quantise");
  Quantisation q;
  r.require("scheme", "say how, for example scheme = \"dorefa\"");
  q.scheme = r.choice("scheme", schemes[0].name, quantisation_schemes());
  const Scheme& scheme = scheme_of(q.scheme);
  q.weights_bits = read_bits(r, "weights_bits", scheme.weights);
  q.activations_bits = read_bits(r, "activations_bits", scheme.activations);
  q.ends = scheme.ends;
  if (scheme.make) q.ends = r.flag("ends", scheme.ends);
  if (q.scheme == "dorefa" || q.scheme == "bnn") q.keep_scale = r.flag("keep_scale", true);
  if (q.scheme == "bnn") q.batch_norm = r.flag("batch_norm", false);
  if (q.batch_norm && q.activations_bits == whole)
    r.problem("batch_norm", "stands before signs, but activations_bits = 32 makes none: remove one of them");
  if (q.scheme == "fixed") {
    q.weights_fraction = static_cast<int>(r.integer("weights_fraction", q.weights_fraction, -64, 64));
    q.activations_fraction = static_cast<int>(r.integer("activations_fraction", q.activations_fraction, -64, 64));
  }
  if (q.scheme == "dorefa" || q.scheme == "fixed" || q.scheme == "flexpoint")
    q.errors_bits = read_bits(r, "errors_bits", {whole, 2, 24});
  if (q.scheme == "fixed")
    q.errors_fraction = static_cast<int>(r.integer("errors_fraction", q.errors_fraction, -64, 64));
  if (q.scheme == "flexpoint") q.predict = r.flag("predict", false);
  if (q.scheme == "halp") {
    q.centring.bits = q.weights_bits;
    q.centring.mu = static_cast<float>(r.number("mu", q.centring.mu, 1e-6, 1e6));
    q.centring.gather = static_cast<std::uint32_t>(r.integer("gather_steps", q.centring.gather, 1, 1 << 30));
    q.centring.period = static_cast<std::uint32_t>(r.integer("period_steps", q.centring.period, 3, 1 << 30));
    if (q.centring.period < q.centring.gather + 2)
      r.problem("period_steps", fmt::format("= {} leaves no step to move in after {} to gather the full gradient",
                                            q.centring.period, q.centring.gather));
  }
  if (q.weights_bits == whole && q.activations_bits == whole)
    r.problem("weights_bits", "and activations_bits are both 32: nothing would be quantised; remove the table");
  r.done();
  return q;
}

std::unique_ptr<Model> quantised(std::unique_ptr<Model> model, const Quantisation& how) {
  if (how.scheme == "halp") return bit_centred(std::move(model), how.centring);
  return std::make_unique<Quantised>(std::move(model), how);
}

}  // namespace echelon::models
