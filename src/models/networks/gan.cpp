#include "models/networks/gan.h"

#include <fmt/format.h>

#include "graph/gradient.h"
#include "graph/ops/dropout.h"
#include "graph/ops/elementwise.h"
#include "models/network.h"

namespace echelon::models {
namespace {

class Gan : public Model {
 public:
  Gan(InputSpec inputs, Shape image, GanOptions options)
      : Model("gan", std::move(inputs)), image_(image), options_(options) {}

  Task task() const override { return Task::generate; }

  std::vector<Phase> training(std::int64_t samples) const override {
    std::vector<Phase> phases;
    phases.push_back({"discriminator", discriminator_graph(true, samples), 1});
    differentiate(phases[0].graph, phases[0].graph.outputs().at("loss"), belongs_to("discriminator."));
    phases.push_back({"generator", generator_graph(samples), 1});
    differentiate(phases[1].graph, phases[1].graph.outputs().at("loss"), belongs_to("generator."));
    return phases;
  }

  // How well the discriminator does on these images and as many generated ones.
  Graph evaluation(std::int64_t samples) const override { return discriminator_graph(false, samples); }

  Graph prediction(std::int64_t samples) const override {
    Graph graph(false);
    graph.set_output("output", generate(graph, samples));
    return graph;
  }

 private:
  static std::function<bool(const Parameter&)> belongs_to(std::string prefix) {
    return [prefix = std::move(prefix)](const Parameter& p) { return p.name.starts_with(prefix); };
  }

  Value generate(Graph& graph, std::int64_t samples) const {
    nn::Net net(graph);
    const auto scope = net.block("generator");
    const Value noise = ops::normal_noise(graph, {samples, options_.latent});
    return gan_generator(net, noise, image_, options_);
  }

  // A Net of its own each time: the judgements of one graph share their parameters.
  Value judge(Graph& graph, Value image) const {
    nn::Net net(graph);
    const auto scope = net.block("discriminator");
    return gan_discriminator(net, image, options_);
  }

  // Cross-entropy of scores against one target for all (1: real, 0: generated), summed.
  Value surprise(Graph& graph, Value scores, float target) const {
    nn::Net net(graph);
    const auto scope = net.block("loss");
    return net.bce_with_logits(scores, ops::offset(graph, ops::scale(graph, scores, 0), target));
  }

  Graph discriminator_graph(bool training, std::int64_t samples) const {
    Graph graph(training);
    std::vector<std::int64_t> dims{samples};
    dims.insert(dims.end(), inputs_.input().type.shape.dims().begin(), inputs_.input().type.shape.dims().end());
    Value real = graph.input(inputs_.input().name, f32(Shape(dims)));
    nn::Net net(graph);
    if (inputs_.input().type.shape.rank() != 3) real = net.reshape(real, image_);
    const Value made = generate(graph, samples);
    const Value on_real = surprise(graph, judge(graph, real), options_.real_target);
    graph.set_output("loss", ops::add(graph, on_real, surprise(graph, judge(graph, made), 0)));
    if (!training) graph.set_output("output", made);
    return graph;
  }

  Graph generator_graph(std::int64_t samples) const {
    Graph graph(true);
    graph.set_output("loss", surprise(graph, judge(graph, generate(graph, samples)), 1));
    return graph;
  }

  Shape image_;
  GanOptions options_;
};

}  // namespace

Value gan_generator(nn::Net& net, Value noise, Shape image, const GanOptions& o) {
  const std::int64_t width = o.width, channels = image[0], h = image[1], w = image[2];
  if (!o.conv) {
    Value x = net.leaky_relu(net.batch_norm(net.linear(noise, 8 * width)), 0.2f);
    x = net.leaky_relu(net.batch_norm(net.linear(x, 16 * width)), 0.2f);
    return net.reshape(net.sigmoid(net.linear(x, image.elements())), image);
  }
  Value x = net.reshape(net.linear(noise, 2 * width * (h / 4) * (w / 4)), {2 * width, h / 4, w / 4});
  x = net.upsample(net.relu(net.batch_norm(x)), 2);
  x = net.relu(net.batch_norm(net.conv2d(x, 2 * width, {.kernel = 3, .padding = 1, .bias = false})));
  x = net.upsample(x, 2);
  x = net.relu(net.batch_norm(net.conv2d(x, width, {.kernel = 3, .padding = 1, .bias = false})));
  return net.sigmoid(net.conv2d(x, channels, {.kernel = 3, .padding = 1}));
}

Value gan_discriminator(nn::Net& net, Value image, const GanOptions& o) {
  const std::int64_t first = o.discriminator_width > 0 ? o.discriminator_width : o.width;
  Value x = image;
  if (!o.conv) {
    x = net.dropout(net.leaky_relu(net.linear(net.flatten(x), 16 * first), 0.2f), 0.3f);
    x = net.dropout(net.leaky_relu(net.linear(x, 8 * first), 0.2f), 0.3f);
    return net.linear(x, 1);
  }
  for (std::int64_t width : {first, 2 * first})
    x = net.dropout(net.leaky_relu(net.conv2d(x, width, {.kernel = 4, .stride = 2, .padding = 1}), 0.2f), 0.3f);
  return net.linear(net.flatten(x), 1);
}

std::unique_ptr<Model> make_gan(OptionReader& options, const InputSpec& inputs) {
  const GanOptions o{.conv = options.choice("kind", "conv", {"conv", "dense"}) == "conv",
                     .latent = options.integer("latent", 64, 1, 1 << 16),
                     .width = options.integer("width", 32, 1, 1 << 12),
                     .discriminator_width = options.integer("discriminator_width", 0, 0, 1 << 12),
                     .real_target = static_cast<float>(options.number("real_target", 0.9, 0.5, 1))};
  check_one_input("gan", options, inputs);
  const Shape& s = inputs.input().type.shape;
  const Shape image = s.rank() == 3 ? s : s.rank() == 2 ? Shape{1, s[0], s[1]} : Shape{1, 4, 4};
  if (inputs.input().type.dtype != DType::f32 || s.rank() < 2 || s.rank() > 3)
    options.problem("name", fmt::format("is gan, which needs images [C, H, W], but the data set's '{}' is {}",
                                        inputs.input().name, to_string(inputs.input().type)));
  else if (o.conv && (image[1] % 4 != 0 || image[2] % 4 != 0))
    options.problem("kind", fmt::format("is \"conv\", which needs sides that are multiples of 4, but images are {}; "
                                        "use kind = \"dense\"",
                                        to_string(s)));
  return std::make_unique<Gan>(inputs, image, o);
}

}  // namespace echelon::models
