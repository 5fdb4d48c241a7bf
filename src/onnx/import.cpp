#include "onnx/import.h"

#include <algorithm>

#include "base/error.h"
#include "base/listed.h"
#include "base/text.h"
#include "onnx/import_rows.h"

namespace echelon::onnx {
namespace {

// A number that no extent of the file is: what stands for the batch while shapes are computed.
std::int64_t stand_in(const Model& file) {
  std::set<std::int64_t> used;
  for (const Tensor& t : file.initializers) {
    used.insert(t.dims.begin(), t.dims.end());
    if (t.element == Element::i64 && t.elements() <= 64)
      for (const std::int64_t x : read_integers(t)) used.insert(x);
  }
  for (const ValueType& v : file.inputs) used.insert(v.dims.begin(), v.dims.end());
  for (const Node& n : file.nodes)
    for (const auto& [name, a] : n.attributes) {
      used.insert(a.integers.begin(), a.integers.end());
      for (const Tensor& t : a.tensor)
        if (t.element == Element::i64 && t.elements() <= 64)
          for (const std::int64_t x : read_integers(t)) used.insert(x);
    }
  for (const std::int64_t prime : {101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179})
    if (!used.contains(prime)) return prime;
  bad_input("the file has so many different extents that no number is left to stand for the batch");
}

const ValueType& chosen_output(const Model& file, const std::string& wanted) {
  std::vector<std::string> names;
  for (const ValueType& v : file.outputs) names.push_back(v.name);
  for (const std::string& name : {wanted, std::string("logits"), std::string("output")}) {
    const auto it = std::ranges::find(names, name);
    if (it != names.end() && !name.empty()) return file.outputs[static_cast<std::size_t>(it - names.begin())];
    if (!wanted.empty())
      bad_input("there is no output '{}'{}; there are {}", wanted, did_you_mean(wanted, names), listed(names));
  }
  if (names.size() == 1) return file.outputs[0];
  bad_input("the file has {} outputs ({}): say which one with --output", names.size(), listed(names));
}

// The nodes that the output needs.
std::set<const Node*> needed_for(const Model& file, const std::string& output) {
  std::map<std::string, const Node*> maker;
  for (const Node& n : file.nodes)
    for (const std::string& out : n.out) {
      if (out.empty()) continue;
      if (!maker.emplace(out, &n).second) bad_input("two nodes give '{}'", out);
    }
  std::set<const Node*> needed;
  std::vector<std::string> open{output};
  while (!open.empty()) {
    const auto it = maker.find(open.back());
    open.pop_back();
    if (it == maker.end() || !needed.insert(it->second).second) continue;
    open.insert(open.end(), it->second->in.begin(), it->second->in.end());
  }
  return needed;
}

}  // namespace

const ImportRow* find_import(std::string_view op) {
  for (const auto rows : {layer_rows(), shape_rows(), arithmetic_rows(), recurrent_rows()})
    for (const ImportRow& row : rows)
      if (row.op == op) return &row;
  return nullptr;
}

ImportedNetwork import_model(const Model& file, const std::string& output) {
  if (file.opset < 9) bad_input("the file is of opset {}; from 9 on they are read", file.opset);
  const ValueType& result = chosen_output(file, output);
  const std::set<const Node*> needed = needed_for(file, result.name);
  Import import(file, stand_in(file));
  std::set<std::string> weights;
  for (const Tensor& t : file.initializers) {
    import.known[t.name] = {.kind = Known::Kind::constant, .tensor = std::make_shared<const Tensor>(t)};
    weights.insert(t.name);
  }
  for (const ValueType& v : file.inputs)
    if (!weights.contains(v.name)) import.known[v.name] = import.input(v);
  for (std::size_t i = 0; i < file.nodes.size(); ++i) {
    const Node& node = file.nodes[i];
    if (!needed.contains(&node) || import.done.contains(&node)) continue;
    NodeImport n(import, node, i);
    if (!node.domain.empty() && node.domain != "ai.onnx")
      n.refuse(fmt::format("the domain {} is not read", node.domain));
    if (node.out.empty()) n.refuse("gives nothing");
    if (fold(n)) continue;
    const ImportRow* row = find_import(node.type);
    if (!row) n.refuse("this op is not read (docs/models-in-and-out.md lists those that are)");
    try {
      row->read(n);
    } catch (const BadInput& problem) {
      if (std::string_view(problem.what()).starts_with("node ")) throw;
      n.refuse(problem.what());
    }
  }
  const auto it = import.known.find(result.name);
  if (it == import.known.end()) bad_input("nothing gives the output '{}'", result.name);
  if (it->second.is(Known::Kind::constant)) bad_input("the output '{}' does not depend on the inputs", result.name);
  Node last;
  last.name = result.name, last.type = "output";
  NodeImport end(import, last, file.nodes.size());
  Known value = end.settled(it->second);
  ImportedNetwork made = import.take(value);
  made.output_name = result.name;
  if (made.layers.empty()) bad_input("the output '{}' is an input as it is: there is nothing to train", result.name);
  // A network's output is its last layer's.
  const auto& last_layer = std::get<Option::Table>(made.layers.back().value)->items.at("name");
  if (std::get<std::string>(last_layer.value) != value.layer) {
    auto same = std::make_shared<Options>();
    same->items["type"] = word("scale"), same->items["input"] = word(value.layer), same->items["name"] = word("output");
    made.layers.push_back({.value = same});
  }
  return made;
}

}  // namespace echelon::onnx
