#pragma once
// A model of ours as an ONNX file (opset 17): its prediction graph, one ONNX node or a few for each node of ours, with
// the weights as initializers under their own names.
//
// The batch is open: the graph is built for two batch sizes, and an extent that differs between them is the batch or a
// multiple of it. What a model keeps from step to step (a carried state) becomes an input NAME and an output NAME.next;
// the noise of a generator becomes an input.

#include <span>

#include "graph/program.h"
#include "models/model.h"
#include "onnx/model.h"

namespace echelon::onnx {

struct ExportOptions {
  std::int64_t batch = 0;  // 0: open; else the file works for batches of this size only
};

// BadInput for an op that ONNX cannot say, and, with an open batch, for a layer whose meaning depends on the batch.
// Thread-safe.
Model export_model(const models::Model& model, const ParameterTable& table, std::span<const float> parameters,
                   const ExportOptions& options = {});

}  // namespace echelon::onnx
