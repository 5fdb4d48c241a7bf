#pragma once
// The table of ONNX ops that can be imported: a name, and how a node becomes layers. Constant, thread-safe.

#include <span>
#include <string_view>

#include "onnx/import_node.h"

namespace echelon::onnx {

struct ImportRow {
  std::string_view op;
  void (*read)(NodeImport&);
};

std::span<const ImportRow> layer_rows();       // layers with weights, pooling, activations
std::span<const ImportRow> shape_rows();       // shapes, parts, orders
std::span<const ImportRow> arithmetic_rows();  // sums and products, and the patterns made of them
std::span<const ImportRow> recurrent_rows();

const ImportRow* find_import(std::string_view op);

}  // namespace echelon::onnx
