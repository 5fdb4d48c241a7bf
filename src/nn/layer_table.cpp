#include "nn/layer_table.h"

#include <algorithm>
#include <set>

#include "base/checked.h"
#include "base/text.h"

namespace echelon::nn {
namespace {

constexpr std::int64_t most_layers = 4096;  // repeats counted
constexpr int most_depth = 8;               // of blocks in blocks

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const LayerKind& kind : layer_table()) names.emplace_back(kind.name);
  names.emplace_back("block");
  return names;
}

// Reads lists of layers inside of each other, and remembers which of the network's inputs were read.
class LayerReader {
 public:
  explicit LayerReader(const std::vector<std::string>& inputs) : inputs_(inputs) {}

  // `known`: the names that can be read here. `repeats`: how often the list will be built.
  std::vector<LayerPlan> list(OptionReader& options, const std::string& key, std::set<std::string> known, int depth,
                              std::int64_t repeats) {
    std::vector<LayerPlan> layers;
    int blocks = 0;
    const std::vector<std::string> allowed = kinds();
    for (OptionReader& o : options.tables(key)) {
      if ((built_ += repeats) > most_layers) {
        options.problem(key, fmt::format("makes more than {} layers, which is the most", most_layers));
        break;
      }
      LayerPlan layer{.name = o.text("name", ""),
                      .inputs = names(o, known, layers.empty() && depth == 0),
                      .build = {},
                      .block = {},
                      .place = o.place("type")};
      if (o.has("name") && (layer.name.empty() || !known.insert(layer.name).second))
        o.problem("name", layer.name.empty() ? "must not be empty" : "is taken: give this layer another name");
      const bool stated = o.require("type", "which kind of layer?");
      const std::string type = o.choice("type", "", allowed);
      if (type == "block")
        read_block(o, layer, known, depth, repeats, blocks += layer.name.empty());
      else if (!type.empty())
        read_layer(o, layer, type);
      else if (!stated)
        o.done();
      layers.push_back(std::move(layer));
    }
    return layers;
  }

  const std::set<std::string>& read_names() const { return read_; }

 private:
  // What a layer reads; nothing if that is the layer before. Names that are not there are problems.
  std::vector<std::string> names(OptionReader& o, const std::set<std::string>& known, bool first) {
    if (o.has("input") && o.has("inputs")) o.problem("inputs", "stands beside input: keep one of them");
    const std::string key = o.has("inputs") ? "inputs" : "input";
    const std::vector<std::string> asked = o.texts(key, {});
    o.ignore(key == "inputs" ? "input" : "inputs");
    if (!o.has(key)) {
      if (first && inputs_.size() > 1)
        o.problem("type", fmt::format("is the first layer and does not say what it reads: set input to one of {}",
                                      fmt::join(inputs_, ", ")));
      else if (first)
        read_.insert(inputs_.front());
      return {};
    }
    std::vector<std::string> found;
    for (const std::string& name : asked) {
      if (!known.contains(name)) {
        const std::vector<std::string> all(known.begin(), known.end());
        o.problem(key, fmt::format("names '{}', but no layer before this one has that name{}", name,
                                   did_you_mean(name, all)));
        continue;
      }
      read_.insert(name);
      found.push_back(name);
    }
    if (asked.empty()) o.problem(key, "names nothing to read");
    return found;
  }

  void read_layer(OptionReader& o, LayerPlan& layer, const std::string& type) {
    const auto table = layer_table();
    const auto kind = std::find_if(table.begin(), table.end(), [&](const LayerKind& k) { return k.name == type; });
    // As many as it says, also where a name is that of no layer.
    const std::size_t n = std::max<std::size_t>(1, o.texts(o.has("inputs") ? "inputs" : "input", {}).size());
    const auto least = static_cast<std::size_t>(kind->least_inputs), most = static_cast<std::size_t>(kind->most_inputs);
    if (n < least || n > most)
      o.problem(o.has("inputs") ? "inputs" : "type",
                most == 1 ? fmt::format("has {} inputs, but {} takes one", n, type)
                : least == most
                    ? fmt::format("has {} input(s), but {} takes {}: say inputs = [...]", n, type, most)
                    : fmt::format("has {} input, but {} joins several: say inputs = [\"...\", ...]", n, type));
    layer.build = kind->read(o);
    o.done();
  }

  void read_block(OptionReader& o, LayerPlan& layer, std::set<std::string> known, int depth, std::int64_t repeats,
                  int number) {
    layer.repeat = static_cast<int>(o.integer("repeat", 1, 1, most_layers));
    layer.residual = o.flag("residual", false);
    if (layer.name.empty()) layer.name = number == 1 ? "block" : fmt::format("block{}", number);
    if (layer.inputs.size() > 1)
      o.problem("inputs", "are several, but a block reads one; its layers can name the others");
    if (depth >= most_depth) {
      o.problem("type", fmt::format("is a block inside of {} others, which is the most", most_depth));
    } else if (o.require("layers", "which layers are in the block?")) {
      known.insert("input");
      layer.block = list(o, "layers", known, depth + 1, repeats * layer.repeat);
      if (layer.block.empty()) o.problem("layers", "is empty");
    }
    o.ignore("layers");
    o.done();
  }

  const std::vector<std::string>& inputs_;
  std::set<std::string> read_;
  std::int64_t built_ = 0;
};

// The values that names stand for while a list is built.
struct Names {
  const Names* outside;
  std::map<std::string, Value> here;

  Value find(const std::string& name) const {
    const auto it = here.find(name);
    if (it != here.end()) return it->second;
    invariant(outside != nullptr, "names were checked when the layers were read");
    return outside->find(name);
  }
};

Value build_list(Net& net, Value last, Names& names, std::span<const LayerPlan> layers);

Value build_block(Net& net, Value x, const Names& names, const LayerPlan& layer) {
  for (int i = 0; i < layer.repeat; ++i) {
    const auto scope = net.block(layer.repeat == 1 ? layer.name : fmt::format("{}.{}", layer.name, i));
    Names inside{&names, {{"input", x}}};
    const Value y = build_list(net, x, inside, layer.block);
    x = layer.residual ? net.add(x, y) : y;
  }
  return x;
}

Value build_list(Net& net, Value last, Names& names, std::span<const LayerPlan> layers) {
  for (const LayerPlan& layer : layers) {
    std::vector<Value> in;
    for (const std::string& name : layer.inputs) in.push_back(names.find(name));
    if (in.empty()) in.push_back(last);
    try {
      if (layer.block.empty()) {
        Net named = net.named(layer.name);
        last = layer.build(named, in);
      } else {
        last = build_block(net, in[0], names, layer);
      }
    } catch (const LayerError&) {
      throw;  // of a layer inside
    } catch (const BadInput& problem) {
      throw LayerError(problem.what(), layer.place);
    }
    if (!layer.name.empty()) names.here[layer.name] = last;
  }
  return last;
}

}  // namespace

std::vector<LayerPlan> read_layers(OptionReader& options, const std::string& key,
                                   const std::vector<std::string>& inputs) {
  LayerReader reader(inputs);
  std::set<std::string> known(inputs.begin(), inputs.end());
  if (inputs.size() == 1) known.insert("input");
  auto layers = reader.list(options, key, known, 0, 1);
  if (inputs.size() > 1 && !layers.empty())
    for (const std::string& input : inputs)
      if (!reader.read_names().contains(input))
        options.problem(
            key, fmt::format("leave out the data set's '{}': let a layer read it (input = \"{}\")", input, input));
  return layers;
}

BuiltLayers build_layers(Net& net, const std::map<std::string, Value>& inputs, std::span<const LayerPlan> layers) {
  Names names{nullptr, inputs};
  if (inputs.size() == 1) names.here["input"] = inputs.begin()->second;
  const Value last = build_list(net, inputs.begin()->second, names, layers);
  return {last, std::move(names.here)};
}

Value build_layers(Net& net, Value input, std::span<const LayerPlan> layers) {
  return build_layers(net, std::map<std::string, Value>{{"input", input}}, layers).last;
}

}  // namespace echelon::nn
