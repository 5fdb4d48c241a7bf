#pragma once
// What a model is to the trainer: graphs for a micro-batch of samples, and what goes into them and comes out. A model
// holds no numbers and no memory; parameters belong to the trainer (graph/program.h, ParameterTable). Immutable once
// made, so it may be read from many threads.
//
// Every graph's inputs are named after the data set's fields and have the samples in front: image f32[samples, 1, 28,
// 28]. Outputs, by name:
//   loss     [1]  summed over the micro-batch (the trainer divides by the global number of terms)
//   correct  [1]  how many terms were predicted right; only where that has a meaning
//   logits   classify: [samples, classes]; multi_label: [samples, labels]; language: [samples * time, vocabulary]
//   output   regress, reconstruct, generate: what the network made

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "models/loss.h"

namespace echelon::models {

// The fields of one sample: what the network sees, and what it should say.
struct InputSpec {
  struct Field {
    std::string name;
    Type type;  // of one sample, no batch: f32[1, 28, 28], i32[64]; a class label is i32[]
    // i32 only: how many different ids each element may have (0 .. n - 1), as of a table's columns; empty if not known.
    std::vector<std::int64_t> categories = {};
  };
  std::vector<Field> inputs;  // at least one; most networks read one
  Field target = {};          // a model that learns without targets does not use it
  std::int64_t classes = 0;   // of the labels, or the size of the vocabulary; 0 if there is no such thing
  LossSpec loss = {};         // what to make small; without a name: what suits the targets
  // Sequences [time, features] begin with rows of zeros that are no part of them: those that are shorter than others.
  bool left_padded = false;

  const Field& input() const { return inputs.front(); }
};

enum class Task { classify, multi_label, regress, language, reconstruct, generate };
std::string_view name_of(Task task);

// One kind of training step, forward and backward. Ordinary models have one; a GAN's two take turns. The weights that
// it trains are those for which the graph has a contribution.
struct Phase {
  std::string name;  // "train"; "discriminator", "generator"
  Graph graph;
  std::int64_t loss_terms = 1;  // a sample's share in the loss's divisor: 1; tokens; pixels
};

class Model {
 public:
  virtual ~Model() = default;
  virtual Task task() const = 0;

  // The phases of a training step on so many samples, backward passes included.
  virtual std::vector<Phase> training(std::int64_t samples) const = 0;
  // Loss and predictions without training: outputs loss, correct and logits or output.
  virtual Graph evaluation(std::int64_t samples) const = 0;
  // Predictions for inputs whose target is not known. A language model sees context() tokens; with carried state the
  // context is one token and the state is a carry. A generator has no inputs: it draws its noise from the step's
  // stream.
  virtual Graph prediction(std::int64_t samples) const = 0;
  virtual std::int64_t context() const { return 0; }
  // Adds the network alone to a graph, without a loss, and returns its scores: what models of several networks are made
  // of (models/wrappers/ensemble.h). BadInput for models that are more than a network and a loss.
  virtual Value scores(Graph& graph, std::span<const Value> inputs) const;
  // prediction() of a language model that sees one token at a time: inputs tokens i32[samples, 1] and position i32[1];
  // what it has seen of the positions before, up to context() of them, is in carries. None if the network cannot do
  // that.
  virtual std::optional<Graph> decoding(std::int64_t samples) const { return (void)samples, std::nullopt; }

  // The same network for sequences of so many rows, with the same parameters, where it reads sequences that are left
  // padded and gives the same answers for the rows behind the padding; else none.
  virtual std::unique_ptr<const Model> of_length(std::int64_t rows) const { return (void)rows, nullptr; }

  const std::string& name() const { return name_; }
  const InputSpec& inputs() const { return inputs_; }

 protected:
  Model(std::string name, InputSpec inputs) : name_(std::move(name)), inputs_(std::move(inputs)) {}

  std::string name_;
  InputSpec inputs_;
};

}  // namespace echelon::models
