#pragma once
// The three usual ways to turn a network (a function that adds layers to a graph) into a Model. Each reads the options
// that all models of its kind share.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/options.h"
#include "models/model.h"
#include "nn/layers.h"

namespace echelon::models {

// x -> scores, for a network that reads one input. What it adds depends on net.training() where layers need it, and on
// nothing else.
using Network = std::function<Value(nn::Net&, Value)>;

// A second opinion on the way: some networks give further scores while training, each with its weight in the loss.
struct Scores {
  Value main;
  std::vector<Value> auxiliary;
  float auxiliary_weight = 0;
};
// The inputs, in the order of InputSpec -> scores.
using ScoringNetwork = std::function<Scores(nn::Net&, std::span<const Value>)>;

// [samples, ...] -> [samples, outputs_of(inputs)]. The loss is that of `inputs`; where that has none, `label_smoothing`
// is read for classes, `loss` (mse, l1, huber) and `huber_delta` for numbers.
std::unique_ptr<Model> classifier(std::string name, OptionReader& options, const InputSpec& inputs, Network network);
std::unique_ptr<Model> classifier(std::string name, OptionReader& options, const InputSpec& inputs,
                                  ScoringNetwork network);
// How many numbers such a network has to return for a sample.
std::int64_t outputs_of(const InputSpec& inputs);
// A problem for a network that reads one input, if the data set has several.
void check_one_input(const std::string& name, OptionReader& options, const InputSpec& inputs);

// tokens i32[samples, time] -> [samples, time, vocabulary]. `carried`: the network keeps its state from step to step.
// Reads `label_smoothing` where `inputs` have no loss.
std::unique_ptr<Model> language_model(std::string name, OptionReader& options, const InputSpec& inputs, bool carried,
                                      Network network);

// image -> scores of the image's own shape, seen through Gaussian noise. Reads `noise`, and `loss`: "bce" for images in
// [0, 1] (a sigmoid turns scores into pixels), "mse" for any range (scores are pixels).
std::unique_ptr<Model> autoencoder(std::string name, OptionReader& options, const InputSpec& inputs, Network network);

}  // namespace echelon::models
