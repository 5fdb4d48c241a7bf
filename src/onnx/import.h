#pragma once
// An ONNX file as a network of ours that can be trained: a list of layers (nn/layer_table.h), as a recipe writes it,
// and the weights by the names that these layers give them.
//
// The file is read node by node. What can be known without inputs (shapes, masks, positions) is computed on the way,
// with a stand-in for the size of the batch; the rest becomes layers. What PyTorch writes out as several nodes (GELU,
// layer norm, a linear layer on sequences) is put together again. Each kind of node has a row in a table
// (import_rows.h).

#include <vector>

#include "base/options.h"
#include "models/model.h"
#include "onnx/model.h"
#include "onnx/names.h"

namespace echelon::onnx {

struct ImportedNetwork {
  Option::List layers;  // tables: what stands in [[model.layers]]
  std::vector<NamedWeights> weights;
  std::vector<models::InputSpec::Field> inputs;  // of one sample
  Shape output;                                  // of one sample
  std::string output_name;
};

// `output`: which one, if the file has several; empty: "logits", "output" or the only one.
// BadInput that names the node and its place for a node that has no row or is used in a way that its row cannot say.
ImportedNetwork import_model(const Model& file, const std::string& output = "");

}  // namespace echelon::onnx
