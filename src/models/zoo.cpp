#include "models/zoo.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "models/networks/alexnet.h"
#include "models/networks/autoencoder.h"
#include "models/networks/deep_stacking.h"
#include "models/networks/densenet.h"
#include "models/networks/gan.h"
#include "models/networks/googlenet.h"
#include "models/networks/gpt.h"
#include "models/networks/graph_network.h"
#include "models/networks/layers_model.h"
#include "models/networks/lenet5.h"
#include "models/networks/mlp.h"
#include "models/networks/recurrent.h"
#include "models/networks/resnet.h"
#include "models/networks/tabular.h"
#include "models/networks/vgg.h"
#include "models/wrappers/distillation.h"
#include "models/wrappers/ensemble.h"
#include "models/wrappers/fine_tuning.h"
#include "models/wrappers/quantised.h"
#include "models/wrappers/sliced.h"
#include "nn/layer_table.h"

namespace echelon::models {
namespace {

using Made = std::unique_ptr<Model>;

// What data sets usually hand out.
InputSpec images(Shape image, std::int64_t classes) {
  return {.inputs = {{"image", f32(image)}}, .target = {"label", i32({})}, .classes = classes};
}
InputSpec vectors() { return images({784}, 10); }
InputSpec digits() { return images({1, 28, 28}, 10); }
InputSpec small_photos() { return images({3, 32, 32}, 10); }
InputSpec photos() { return images({3, 224, 224}, 1000); }
InputSpec table() {
  return {.inputs = {{"numbers", f32({8})}, {"categories", i32({3}), {2, 7, 40}}},
          .target = {"label", i32({})},
          .classes = 2};
}
InputSpec graph_nodes() {
  return {.inputs = {{"node", f32({20})}, {"neighbours1", f32({5, 20})}, {"neighbours2", f32({5, 4, 20})}},
          .target = {"label", i32({})},
          .classes = 4};
}
InputSpec sequences() { return images({64, 128}, 10); }
InputSpec text(std::int64_t length, std::int64_t vocabulary) {
  return {.inputs = {{"tokens", i32({length})}}, .target = {"targets", i32({length})}, .classes = vocabulary};
}

// Rows for families: the number is the depth.
template <int depth>
Made vgg_row(OptionReader& o, const InputSpec& in) {
  return make_vgg(depth, o, in);
}
template <int depth>
Made resnet_row(OptionReader& o, const InputSpec& in) {
  return make_resnet(depth, o, in);
}
template <int depth>
Made densenet_row(OptionReader& o, const InputSpec& in) {
  return make_densenet(depth, o, in);
}
template <Cell cell>
Made classifier_row(OptionReader& o, const InputSpec& in) {
  return make_recurrent_classifier(cell, o, in);
}
template <Cell cell>
Made char_row(OptionReader& o, const InputSpec& in) {
  return make_char_rnn(cell, o, in);
}
InputSpec words() { return text(128, 1024); }
InputSpec characters() { return text(64, 96); }

constexpr std::string_view vgg_keys = "width = 64, batch_norm = false, hidden = 4096, dropout = 0.5";
constexpr std::string_view resnet_keys = "width = 64, stem = \"auto\", shortcut = \"project\"";
constexpr std::string_view cifar_keys = "width = 16, shortcut = \"pad\"";
constexpr std::string_view cell_keys = "hidden = 256, layers = 1, dropout = 0";
constexpr std::string_view char_keys = "hidden = 256, layers = 1, embedding = 64, dropout = 0";

// The table. Name, what it is, keys with defaults, usual data, how to make it.
constexpr auto networks = std::to_array<Entry>({
    {"mlp", "multi-layer perceptron", "hidden = [1024, 1024], dropout = 0, batch_norm = false", vectors, make_mlp},
    {"tabular", "MLP on a table: numbers beside embeddings of the categories (Guo and Berkhahn 2016)",
     "hidden = [128, 64], dropout = 0, batch_norm = false, embedding = 0 (auto)", table, make_tabular},
    {"deep_stacking", "modules of one hidden layer, each trained by its own error (Deng and Yu 2011)",
     "modules = 3, hidden = 256", vectors, make_deep_stacking},
    {"lenet5", "LeNet-5 with ReLU and max pooling (LeCun et al. 1998)", "", digits, make_lenet5},
    {"alexnet", "AlexNet (Krizhevsky et al. 2012), the original with two groups and response norm",
     "variant = \"original\" or \"single\", stem = \"auto\", hidden = 4096, dropout = 0.5", photos, make_alexnet},
    {"vgg11", "VGG with 11 layers (Simonyan and Zisserman 2014)", vgg_keys, photos, vgg_row<11>},
    {"vgg13", "VGG with 13 layers", vgg_keys, photos, vgg_row<13>},
    {"vgg16", "VGG with 16 layers", vgg_keys, photos, vgg_row<16>},
    {"vgg19", "VGG with 19 layers", vgg_keys, photos, vgg_row<19>},
    {"googlenet", "GoogLeNet, inception blocks (Szegedy et al. 2014)",
     "auxiliary = false, batch_norm = false, stem = \"auto\", dropout = 0.4", photos, make_googlenet},
    {"resnet18", "residual network with 18 layers (He et al. 2015)", resnet_keys, small_photos, resnet_row<18>},
    {"resnet34", "residual network with 34 layers", resnet_keys, photos, resnet_row<34>},
    {"resnet50", "residual network with 50 layers, bottleneck blocks", resnet_keys, photos, resnet_row<50>},
    {"resnet20", "residual network of the CIFAR family with 20 layers", cifar_keys, small_photos, resnet_row<20>},
    {"resnet56", "residual network of the CIFAR family with 56 layers", cifar_keys, small_photos, resnet_row<56>},
    {"densenet121", "DenseNet-BC with 121 layers, growth 32 (Huang et al. 2016)",
     "growth = 32, stem = \"auto\", dropout = 0", photos, densenet_row<121>},
    {"densenet40", "DenseNet-BC of the CIFAR family with 40 layers", "growth = 12, dropout = 0", small_photos,
     densenet_row<40>},
    {"lstm", "LSTM that reads a sequence and classifies it", cell_keys, sequences, classifier_row<Cell::lstm>},
    {"gru", "GRU that reads a sequence and classifies it", cell_keys, sequences, classifier_row<Cell::gru>},
    {"char_lstm", "LSTM language model, state carried over steps", char_keys, characters, char_row<Cell::lstm>},
    {"char_gru", "GRU language model, state carried over steps", char_keys, characters, char_row<Cell::gru>},
    {"char_rnn", "plain recurrent language model, state carried over steps", char_keys, characters,
     char_row<Cell::rnn>},
    {"gpt", "GPT-style Transformer language model (Radford et al. 2019)",
     "width = 256, heads = 4, layers = 4, tied = false, dropout = 0, experts = 0, experts_per_token = 2, capacity = "
     "1.25, "
     "balance = 0.01",
     words, make_gpt},
    {"autoencoder", "dense denoising autoencoder (Vincent et al. 2008)",
     "hidden = [512, 128, 32], noise = 0.3, loss = \"bce\" or \"mse\"", digits, make_autoencoder},
    {"conv_autoencoder", "convolutional denoising autoencoder", "width = 16, code = 32, noise = 0.3, loss = \"bce\"",
     digits, make_conv_autoencoder},
    {"gan", "generative adversarial network (Goodfellow et al. 2014)",
     "kind = \"conv\" or \"dense\", latent = 64, width = 32, discriminator_width = width, real_target = 0.9", digits,
     make_gan},
    {"gcn", "graph convolutions over the nodes of a graph (Kipf and Welling 2017)", "hidden = 16, dropout = 0.5",
     graph_nodes, make_gcn},
    {"sage", "GraphSAGE: a node beside the mean of neighbours that are drawn (Hamilton et al. 2017)",
     "hidden = 16, dropout = 0.5", graph_nodes, make_sage},
    {"gat", "graph attention (Velickovic et al. 2018)", "hidden = 8, heads = 8, dropout = 0.5", graph_nodes, make_gat},
    {"layers", "a network written in the recipe, layer by layer", "layers", digits, make_layers_model},
});

EnsembleSpec read_members(OptionReader& options) {
  EnsembleSpec spec{.members = static_cast<int>(options.integer("members", 1, 1, most_slices)),
                    .trunk = options.text("trunk", ""),
                    .codistil = options.number("codistil", 0, 0, 100)};
  for (const char* key : {"trunk", "codistil"})
    if (options.has(key) && spec.members == 1)
      options.problem(key, "is for several networks: set members to 2 or more");
  return spec;
}

// The network of [model.teacher], and how it teaches; null without one, or with a problem.
std::unique_ptr<const Model> read_teacher(OptionReader& options, const InputSpec& inputs,
                                          std::optional<TeacherSpec>& taught) {
  if (!options.has("teacher")) return nullptr;
  if (!options.has("init"))
    options.problem("teacher",
                    "has nothing to teach before it is trained: name its run in [model.init], with rename "
                    "= { \"*\" = \"teacher.*\" }");
  OptionReader table = options.table("teacher");
  taught = TeacherSpec{.temperature = table.number("temperature", 2, 0.01, 100),
                       .weight = table.number("weight", 0.9, 0, 1)};
  if (!table.require("name", "which network is the teacher?")) return nullptr;
  return make_model(table.text("name", ""), table, inputs);
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const Entry& e : networks) list.emplace_back(e.name);
  return list;
}

const Entry* find(const std::string& name) {
  const auto it = std::find_if(networks.begin(), networks.end(), [&](const Entry& e) { return e.name == name; });
  return it == networks.end() ? nullptr : &*it;
}

}  // namespace

std::span<const Entry> zoo() { return networks; }

const Entry& find_model(const std::string& name) {
  if (const Entry* entry = find(name)) return *entry;
  bad_input("there is no model '{}'{}; `echelon models list` shows all", name, did_you_mean(name, names()));
}

std::unique_ptr<Model> make_model(const std::string& name, OptionReader& options, const InputSpec& inputs) {
  const std::size_t before = options.problems().list().size();
  options.ignore("name");
  const Entry* entry = find(name);
  if (!entry) {
    options.problem("name", fmt::format("is '{}', but there is no such model{}; there are {}", name,
                                        did_you_mean(name, names()), fmt::join(names(), ", ")));
    return nullptr;
  }
  auto model = entry->make(options, inputs);
  const EnsembleSpec members = read_members(options);
  std::optional<TeacherSpec> taught;
  std::unique_ptr<const Model> teacher = read_teacher(options, inputs, taught);
  const std::optional<Quantisation> quantisation = read_quantisation(options);
  const auto slices = static_cast<int>(options.integer("slices", 1, 1, most_slices));
  const std::string images = options.choice("slice_images", "channels", {"channels", "strips", "columns"});
  const bool strips = images != "channels";
  if (strips && slices == 1) options.problem("slice_images", "says how slices are cut, but there is one: set slices");
  const bool overlap = options.choice("slice_halos", "exchange", {"exchange", "compute"}) == "compute";
  if (overlap && !strips)
    options.problem("slice_halos", "says where the edges of strips come from: set slice_images to strips or columns");
  const bool grid = options.choice("slice_linear", "lines", {"lines", "grid"}) == "grid";
  if (grid && Slicing(slices).grid_columns() == slices)
    options.problem("slice_linear",
                    fmt::format("= \"grid\" needs slices in rows and columns, and {} is no product of two "
                                "numbers: set slices to 4, 6, 8, 9, ...",
                                slices));
  if (slices > 1 && quantisation)
    options.problem("slices", "does not go together with [model.quantise]: remove one of them");
  for (const char* key : {"members", "teacher"}) {
    if (key == std::string("members") ? members.members == 1 : !taught) continue;
    if (slices > 1)
      options.problem("slices", fmt::format("does not go together with model.{}: remove one of them", key));
    if (quantisation)
      options.problem("quantise", fmt::format("does not go together with model.{}: remove one of them", key));
  }
  if (members.members > 1 && taught)
    options.problem("members",
                    "does not go together with model.teacher: a student is one network; the teacher may have "
                    "members");
  options.ignore("freeze");
  options.ignore("init");  // run/training/initial_weights.h
  options.done();
  if (options.problems().list().size() > before) return nullptr;
  // Shapes that do not fit are found by building it once, for two samples.
  try {
    model->training(2);
    if (members.members > 1) model = ensemble(std::move(model), members);
    if (teacher) model = distilled(std::move(model), std::move(teacher), *taught);
    model = read_frozen(std::move(model), options);
    if (options.problems().list().size() > before) return nullptr;
    if (quantisation) model = quantised(std::move(model), *quantisation);
    if (slices > 1) {
      try {
        model = sliced(std::move(model), {slices, strips, images == "columns", grid, overlap});
      } catch (const BadInput& problem) {
        options.problem("slices", problem.what());
        return nullptr;
      }
    }
  } catch (const nn::LayerError& problem) {
    options.problems().add(problem.place(), problem.what());
    return nullptr;
  } catch (const BadInput& problem) {
    options.problem("name", fmt::format("is {}, which does not fit the data: {}", name, problem.what()));
    return nullptr;
  }
  return model;
}

std::unique_ptr<Model> make_model(const std::string& name, const InputSpec& inputs, const Options& options) {
  Problems problems;
  OptionReader reader(options, problems);
  auto model = make_model(name, reader, inputs);
  problems.throw_if_any("model " + name);
  return model;
}

}  // namespace echelon::models
