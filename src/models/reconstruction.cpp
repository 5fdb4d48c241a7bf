// Models that give an image back which they see through noise.
#include "base/error.h"
#include "graph/ops/dropout.h"
#include "graph/ops/elementwise.h"
#include "models/networks/network_parts.h"

namespace echelon::models {
namespace {

class Autoencoder : public Model {
 public:
  Autoencoder(std::string name, InputSpec inputs, float noise, bool unit_range, Network network)
      : Model(std::move(name), std::move(inputs)),
        noise_(noise),
        unit_range_(unit_range),
        network_(std::move(network)) {}

  Task task() const override { return Task::reconstruct; }
  std::vector<Phase> training(std::int64_t samples) const override {
    return one_phase(with_loss(true, samples), inputs_.input().type.elements());
  }
  Graph evaluation(std::int64_t samples) const override { return with_loss(false, samples); }
  Graph prediction(std::int64_t samples) const override {
    Graph graph(false);
    nn::Net net(graph);
    graph.set_output("output", made(net, network_(net, add_input(graph, inputs_.input(), samples))));
    return graph;
  }

 private:
  Value made(nn::Net& net, Value logits) const { return unit_range_ ? net.sigmoid(logits) : logits; }

  // The network sees the image with noise on it, and is asked for the image.
  Graph with_loss(bool training, std::int64_t samples) const {
    Graph graph(training);
    nn::Net net(graph);
    const Value image = add_input(graph, inputs_.input(), samples);
    Value seen = image;
    if (noise_ > 0) {
      const auto scope = net.block("noise");
      seen = ops::add(graph, image, ops::scale(graph, ops::normal_noise(graph, net.shape(image)), noise_));
    }
    const Value logits = network_(net, seen);
    const Value loss = unit_range_ ? net.bce_with_logits(logits, image) : net.mse(logits, image);
    graph.set_output("loss", with_extra_losses(net, loss));
    if (!training) {
      graph.set_output("output", made(net, logits));
      graph.set_output("noisy", seen);
    }
    return graph;
  }

  float noise_;
  bool unit_range_;
  Network network_;
};

}  // namespace

std::unique_ptr<Model> autoencoder(std::string name, OptionReader& options, const InputSpec& inputs, Network network) {
  check_one_input(name, options, inputs);
  if (inputs.input().type.dtype != DType::f32)
    options.problem("name", fmt::format("is {}, which needs numbers, but the data set's '{}' is {}", name,
                                        inputs.input().name, to_string(inputs.input().type)));
  const auto noise = static_cast<float>(options.number("noise", 0.3, 0, 1e3));
  const bool unit_range = options.choice("loss", "bce", {"bce", "mse"}) == "bce";
  return std::make_unique<Autoencoder>(std::move(name), inputs, noise, unit_range, std::move(network));
}

}  // namespace echelon::models
