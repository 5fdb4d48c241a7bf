#include "tests/support/zoo_networks.h"

namespace echelon::test {
namespace {

models::InputSpec small_images(Shape image, std::int64_t classes) {
  return {.inputs = {{"image", f32(image)}}, .target = {"label", i32({})}, .classes = classes};
}
models::InputSpec small_text(std::int64_t length, std::int64_t vocabulary) {
  return {.inputs = {{"tokens", i32({length})}}, .target = {"targets", i32({length})}, .classes = vocabulary};
}

}  // namespace

std::vector<SmallNetwork> small_networks() {
  const models::InputSpec digits = small_images({1, 28, 28}, 10), photos = small_images({3, 32, 32}, 10),
                          table = {.inputs = {{"numbers", f32({4})}, {"categories", i32({2}), {3, 5}}},
                                   .target = {"label", i32({})},
                                   .classes = 3},
                          numbers = {.inputs = {{"x", f32({5})}}, .target = {"y", f32({3})}, .classes = 0};
  return {
      {"mlp", small_images({20}, 4), "hidden = [17, 13]\nbatch_norm = true\ndropout = 0.2"},
      {"mlp", numbers, "hidden = [6]"},
      {"tabular", table, "hidden = [9]\nembedding = 2"},
      {"lenet5", digits, ""},
      {"alexnet", photos, "hidden = 16"},
      {"alexnet", small_images({3, 64, 64}, 5), "hidden = 16\nvariant = 'single'"},
      {"vgg11", photos, "width = 4\nhidden = 16"},
      {"vgg13", photos, "width = 4\nhidden = 16\nbatch_norm = true"},
      {"vgg16", photos, "width = 4\nhidden = 16"},
      {"vgg19", photos, "width = 4\nhidden = 16"},
      {"googlenet", photos, "batch_norm = true"},
      {"resnet18", photos, "width = 4"},
      {"resnet34", digits, "width = 4"},
      {"resnet50", photos, "width = 4"},
      {"resnet20", photos, "width = 4"},
      {"resnet20", photos, "width = 4\nslices = 2"},
      {"resnet20", photos, "width = 4\nslices = 2\nslice_images = 'strips'"},
      {"resnet56", photos, "width = 4"},
      {"densenet121", small_images({3, 64, 64}, 4), "growth = 4"},
      {"densenet40", photos, "growth = 4"},
      {"lstm", small_images({9, 5}, 4), "hidden = 11\nlayers = 2"},
      {"lstm", small_images({4, 5}, 4), "hidden = 6\nslices = 2"},
      {"gru", small_images({9, 5}, 4), "hidden = 11"},
      {"gru", small_images({4, 5}, 4), "hidden = 6\nslices = 2"},
      {"char_lstm", small_text(7, 13), "hidden = 10\nembedding = 5\nlayers = 2"},
      {"char_gru", small_text(7, 13), "hidden = 10"},
      {"char_rnn", small_text(7, 13), "hidden = 10"},
      {"char_rnn", small_text(7, 13), "hidden = 10\nslices = 2"},
      {"gpt", small_text(9, 17), "width = 12\nheads = 3\nlayers = 2\ntied = true"},
      {"gpt", small_text(9, 17), "width = 12\nheads = 3\nlayers = 2"},
      {"gpt", small_text(6, 17), "width = 8\nheads = 2\nlayers = 1\nexperts = 4\ncapacity = 0.5", 4},
      {"gpt", small_text(6, 17), "width = 8\nheads = 2\nlayers = 1\nexperts = 4\nexperts_per_token = 1", 4},
      {"autoencoder", digits, "hidden = [20, 5]"},
      {"autoencoder", numbers, "hidden = 4\nloss = 'mse'\nnoise = 0"},
      {"conv_autoencoder", small_images({3, 8, 12}, 10), "width = 4\ncode = 6"},
      {"gan", digits, "width = 4\nlatent = 6"},
      {"gan", small_images({28, 28}, 10), "kind = 'dense'\nwidth = 4\nlatent = 6"},
      {"deep_stacking", digits, "modules = 2\nhidden = 9"},
      {"lenet5", digits, "quantise = {scheme = 'dorefa', weights_bits = 2, activations_bits = 3}"},
      {"lenet5", digits, "quantise = {scheme = 'bnn'}"},
      {"lenet5", digits, "quantise = {scheme = 'ternary'}"},
      {"lenet5", digits, "quantise = {scheme = 'fixed', weights_bits = 12, weights_fraction = 8}"},
      {"lenet5", digits, "quantise = {scheme = 'flexpoint', weights_bits = 10}"},
      {"layers", small_images({2, 8, 8}, 4),
       "layers = [{type = 'conv2d', out = 6, stride = 2, weight_norm = true}, {type = 'group_norm', groups = 2},"
       "{type = 'silu'}, {type = 'depthwise', padding = 2, dilation = 2},"
       "{type = 'conv_transpose2d', out = 4, kernel = 2, stride = 2, name = 'up'}, {type = 'global_avg_pool'},"
       "{type = 'sigmoid', name = 'gate'}, {type = 'multiply', inputs = ['up', 'gate']}, {type = 'upsample'},"
       "{type = 'avg_pool', kernel = 3, stride = 2, padding = 1, count_padding = false}, {type = 'softplus'},"
       "{type = 'local_response_norm', size = 3}, {type = 'elu', alpha = 0.7}, {type = 'global_avg_pool'}]"},
      {"layers", small_images({6, 4}, 3),
       "layers = [{type = 'gru', hidden = 5, layers = 2, bidirectional = true, name = 'read'}, {type = 'positions'},"
       "{type = 'attention', heads = 2, name = 'self'}, {type = 'layer_norm'},"
       "{type = 'cross_attention', heads = 2, inputs = ['self', 'read']}, {type = 'gelu'}, {type = 'tanh'},"
       "{type = 'transpose'}, {type = 'conv1d', out = 4, padding = 1}, {type = 'leaky_relu', slope = 0.1},"
       "{type = 'max_pool'}, {type = 'batch_norm'}, {type = 'flatten'}, {type = 'linear', out = 3}, {type = "
       "'softmax'}]"},
  };
}

}  // namespace echelon::test
