#pragma once
// The table of ops that can be exported: a name, and how a node of that op becomes ONNX nodes. To export a new op, add
// a row (and let the op tell its settings, graph/attributes.h). Constant, thread-safe.

#include <span>
#include <string_view>
#include <vector>

#include "onnx/export_node.h"

namespace echelon::onnx {

struct ExportRow {
  std::string_view op;  // Op::name()
  void (*write)(NodeExport&);
};

// The rows of each file of them.
std::span<const ExportRow> plain_rows();      // arithmetic and shapes
std::span<const ExportRow> feature_rows();    // layers on images and features
std::span<const ExportRow> sequence_rows();   // attention and recurrent layers
std::span<const ExportRow> quantised_rows();  // few-bit numbers, mixtures of experts

const ExportRow* find_export(std::string_view op);  // null: there is no such row

}  // namespace echelon::onnx
