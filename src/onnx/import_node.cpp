#include "onnx/import_node.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"

namespace echelon::onnx {

int Known::rank() const { return is(Kind::constant) ? static_cast<int>(tensor->dims.size()) : shape.rank(); }

std::int64_t Known::extent(int axis) const {
  if (is(Kind::constant)) return tensor->dims.at(static_cast<std::size_t>(axis));
  return shape[order.empty() ? axis : order.at(static_cast<std::size_t>(axis))];
}

Option whole(std::int64_t n) { return {.value = n}; }
Option number(double x) { return {.value = x}; }
Option word(std::string text) { return {.value = std::move(text)}; }
Option words(const std::vector<std::string>& texts) {
  Option::List list;
  for (const std::string& t : texts) list.push_back(word(t));
  return {.value = list};
}
Option wholes(const std::vector<std::int64_t>& numbers) {
  Option::List list;
  for (const std::int64_t n : numbers) list.push_back(whole(n));
  return {.value = list};
}
Option yes_or_no(bool b) { return {.value = b}; }

Import::Import(const Model& file, std::int64_t batch)
    : file_(file), batch_(batch), graph_(std::make_shared<Graph>(false)), net_(*graph_) {
  for (const Node& n : file.nodes)
    for (const std::string& in : n.in) readers[in].push_back(&n);
  for (const ValueType& v : file.outputs) readers[v.name].push_back(nullptr);
}

Known Import::input(const ValueType& v) {
  if (v.dims.empty()) bad_input("input '{}' has no dimensions; the first one must be the batch", v.name);
  std::vector<std::int64_t> dims{batch_};
  for (std::size_t i = 1; i < v.dims.size(); ++i) {
    if (v.dims[i] < 1)
      bad_input(
          "input '{}': dimension {} is open ({}); only the batch, the first one, may be. Export it with a fixed size",
          v.name, i, v.names[i].empty() ? "no name" : v.names[i]);
    dims.push_back(v.dims[i]);
  }
  if (dims.size() > Shape::max_rank)
    bad_input("input '{}' has {} dimensions; at most six are possible", v.name, dims.size());
  const Type type{v.element == Element::f32 ? DType::f32 : DType::i32, Shape(dims), Layout::plain};
  // The network's own inputs are named "input" in a recipe, or as they are if there are several.
  std::string name = v.name;
  values_[name] = graph_->input(name, type);
  names_.insert(name);
  made_.inputs.push_back({v.name, {type.dtype, Shape(std::span(dims).subspan(1)), Layout::plain}, {}});
  return {.kind = Known::Kind::value, .layer = name, .shape = type.shape};
}

Known Import::layer(const std::string& type, const std::string& base, std::vector<Known> in,
                    std::vector<Setting> settings) {
  const auto table = nn::layer_table();
  const auto kind = std::ranges::find_if(table, [&](const nn::LayerKind& k) { return k.name == type; });
  invariant(kind != table.end(), "a row names a kind of layer that there is");
  if (made_.layers.size() >= 4096) bad_input("the network has more than 4096 layers");
  const std::string stem = base.empty() ? type : base;
  std::string name = stem;
  for (int i = 2; !names_.insert(name).second || name == "input"; ++i) name = fmt::format("{}_{}", stem, i);
  auto options = std::make_shared<Options>();
  std::vector<Value> values;
  std::vector<std::string> sources;
  for (const Known& k : in) values.push_back(values_.at(k.layer)), sources.push_back(k.layer);
  for (auto& [key, value] : settings) options->items[key] = value;
  Problems problems;
  OptionReader reader(*options, problems);
  const nn::BuildLayer build = kind->read(reader);
  reader.done();
  problems.throw_if_any(name);
  nn::Net named = net_.named(name);
  const Value y = build(named, values);
  values_[name] = y;
  options->items["type"] = word(type);
  options->items["name"] = word(name);
  for (std::string& s : sources)
    if (made_.inputs.size() == 1 && s == made_.inputs[0].name) s = "input";
  sources.size() == 1 ? options->items["input"] = word(sources[0]) : options->items["inputs"] = words(sources);
  made_.layers.push_back({.value = options});
  return {.kind = Known::Kind::value, .layer = name, .shape = graph_->type(y).shape};
}

void Import::weight(const std::string& layer, const std::string& name, Shape shape, std::vector<float> numbers) {
  for (const float x : numbers)
    if (!std::isfinite(x)) bad_input("the weights {}.{} are not all finite numbers", layer, name);
  const std::string full = layer + "." + name;
  const auto& made = graph_->parameters();
  const auto it = std::find_if(made.rbegin(), made.rend(), [&](const Parameter& p) { return p.name == full; });
  invariant(it != made.rend(), "weights are given to a layer that has them");
  if (!(it->shape == shape))
    bad_input("the weights {} are {}, but the layer needs {}", full, to_string(shape), to_string(it->shape));
  made_.weights.push_back({full, shape, std::move(numbers)});
}

ImportedNetwork Import::take(const Known& output) {
  made_.output = Shape(output.shape.dims().subspan(1));
  return std::move(made_);
}

const Known& NodeImport::in(std::size_t i) const {
  if (!has(i)) refuse(fmt::format("has no input {}", i));
  const auto it = import_.known.find(node_.in[i]);
  if (it == import_.known.end()) refuse(fmt::format("reads '{}', which nothing before it gives", node_.in[i]));
  return it->second;
}

const Tensor& NodeImport::constant(std::size_t i) const {
  if (!is_constant(i)) refuse(fmt::format("its input {} must be known without running the network", i));
  return *in(i).tensor;
}

std::optional<double> NodeImport::scalar(std::size_t i) const {
  if (!is_constant(i) || constant(i).elements() != 1) return {};
  return static_cast<double>(read_floats(constant(i))[0]);
}

void NodeImport::out(const Known& value, std::size_t i) {
  if (i < node_.out.size() && !node_.out[i].empty()) import_.known[node_.out[i]] = value;
}

Known NodeImport::settled(const Known& k) {
  using Kind = Known::Kind;
  Known v = k;
  if (v.is(Kind::normalised)) {
    const std::int64_t width = v.shape[-1];
    Known y = import_.layer("layer_norm", "", {v}, {{"eps", number(v.eps)}});
    import_.weight(y.layer, "weight", {width}, std::vector<float>(static_cast<std::size_t>(width), 1));
    import_.weight(y.layer, "bias", {width}, std::vector<float>(static_cast<std::size_t>(width), 0));
    return y;
  }
  if (!v.is(Kind::value))
    refuse("reads a piece of a pattern (layer norm, GELU, a recurrent layer) that it does not complete");
  if (!v.order.empty()) {
    if (v.order[0] != 0) refuse("has the batch in another place than the first, which layers here cannot");
    const Known before{.kind = Kind::value, .layer = v.layer, .shape = v.shape};
    const Known y = import_.layer("permute", "", {before}, {{"axes", wholes({v.order.begin() + 1, v.order.end()})}});
    v.layer = y.layer, v.shape = y.shape, v.order.clear();
  }
  if (v.factor == 1 && v.offset == 0) return v;
  const Known before{.kind = Kind::value, .layer = v.layer, .shape = v.shape};
  return import_.layer("scale", "", {before}, {{"factor", number(v.factor)}, {"offset", number(v.offset)}});
}

std::int64_t NodeImport::integer(const std::string& name, std::int64_t fallback) const {
  const auto it = node_.attributes.find(name);
  return it == node_.attributes.end() ? fallback : it->second.integer;
}
double NodeImport::real(const std::string& name, double fallback) const {
  const auto it = node_.attributes.find(name);
  return it == node_.attributes.end() ? fallback : it->second.real;
}
std::string NodeImport::text(const std::string& name, const std::string& fallback) const {
  const auto it = node_.attributes.find(name);
  return it == node_.attributes.end() ? fallback : it->second.text;
}
std::vector<std::int64_t> NodeImport::list(const std::string& name, std::vector<std::int64_t> fallback) const {
  const auto it = node_.attributes.find(name);
  return it == node_.attributes.end() ? std::move(fallback) : it->second.integers;
}

int NodeImport::axis(std::int64_t stated, int rank) const {
  const std::int64_t a = stated < 0 ? stated + rank : stated;
  if (a < 0 || a >= rank) refuse(fmt::format("there is no axis {} among {}", stated, rank));
  return static_cast<int>(a);
}

std::string NodeImport::module(std::initializer_list<std::size_t> weights) const {
  for (const std::size_t i : weights) {
    if (!has(i)) continue;
    const std::string& name = node_.in[i];
    const std::size_t dot = name.rfind('.');
    if (dot != std::string::npos && dot > 0 && name.find("::") == std::string::npos && name[0] != '/')
      return name.substr(0, dot);
  }
  // "/layer1/layer1.0/conv1/Conv": a part that the next one begins with says nothing new.
  std::vector<std::string> parts;
  for (const std::string_view part : split(node_.name, '/'))
    if (!part.empty()) {
      if (!parts.empty() && part.starts_with(parts.back() + ".")) parts.pop_back();
      parts.emplace_back(part);
    }
  if (parts.size() < 2) return "";
  parts.pop_back();
  return fmt::format("{}", fmt::join(parts, "."));
}

Known NodeImport::reshaped(const Known& x, std::vector<std::int64_t> dims) {
  std::int64_t known = 1;
  int open = -1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] >= 0) known = checked_multiply(known, dims[i], "the new shape");
    if (dims[i] == -1 && open >= 0) refuse("two extents of the new shape are open");
    if (dims[i] == -1) open = static_cast<int>(i);
    if (dims[i] < -1) refuse(fmt::format("{} is no extent", dims[i]));
  }
  if (open >= 0 && known > 0) dims[static_cast<std::size_t>(open)] = x.shape.elements() / known;
  if (dims.empty() || dims.size() > Shape::max_rank || dims[0] != import_.batch())
    refuse(fmt::format("the new shape [{}] does not begin with the batch ({}), which layers here cannot",
                       fmt::join(dims, ", "), import_.batch()));
  if (std::ranges::equal(dims, x.shape.dims())) return x;
  if (!(Shape(dims).elements() == x.shape.elements()))
    refuse(fmt::format("{} cannot become [{}]", to_string(x.shape), fmt::join(dims, ", ")));
  if (dims.size() == 2) return import_.layer("flatten", "", {x});
  return import_.layer("reshape", "", {x}, {{"shape", wholes({dims.begin() + 1, dims.end()})}});
}

void NodeImport::refuse(const std::string& why) const {
  bad_input("node {} '{}' ({}): {}", index_, node_.name, node_.type, why);
}

}  // namespace echelon::onnx
