#include "models/networks/googlenet.h"

#include "models/networks/image.h"

namespace echelon::models {
namespace {

// Widths of an inception block: 1x1; 3x3 after its reduction; 5x5 after its reduction; 1x1 after pooling.
struct Widths {
  const char* name;
  int one, three_reduce, three, five_reduce, five, pool;
};

class Builder {
 public:
  Builder(nn::Net& net, const GoogLeNetOptions& options) : net_(net), o_(options) {}

  Value conv(const std::string& name, Value x, std::int64_t out, int kernel, int stride = 1) {
    const auto scope = net_.block(name);
    x = net_.conv2d(
        x, out,
        {.kernel = kernel, .stride = stride, .padding = kernel / 2, .bias = !o_.batch_norm, .init = nn::he_normal()});
    return net_.relu(o_.batch_norm ? net_.batch_norm(x) : x);
  }

  Value inception(Value x, const Widths& w) {
    const auto scope = net_.block(std::string("inception") + w.name);
    return net_.concat({conv("one", x, w.one, 1), conv("three", conv("three_reduce", x, w.three_reduce, 1), w.three, 3),
                        conv("five", conv("five_reduce", x, w.five_reduce, 1), w.five, 5),
                        conv("pool", net_.max_pool(x, 3, {.stride = 1, .padding = 1}), w.pool, 1)});
  }

  Value halve(Value x) { return net_.max_pool(x, 3, {.stride = 2, .padding = 1}); }
  Value norm(Value x) { return o_.batch_norm ? x : net_.local_response_norm(x); }

  Value auxiliary(const std::string& name, Value x, std::int64_t classes) {
    const auto scope = net_.block(name);
    x = conv("reduce", net_.avg_pool(x, 5, {.stride = 3}), 128, 1);
    x = net_.relu(net_.named("fc1").linear(net_.flatten(x), 1024));
    return net_.named("fc2").linear(net_.dropout(x, 0.7f), classes);
  }

 private:
  nn::Net& net_;
  const GoogLeNetOptions& o_;
};

}  // namespace

Scores googlenet(nn::Net& net, Value x, std::int64_t classes, const GoogLeNetOptions& o) {
  Builder b(net, o);
  Scores scores{.main = {}, .auxiliary = {}, .auxiliary_weight = 0.3f};
  x = as_image(net, x);
  if (o.small_stem) {
    x = b.conv("conv1", x, 192, 3);
  } else {
    x = b.norm(b.halve(b.conv("conv1", x, 64, 7, 2)));
    x = b.halve(b.norm(b.conv("conv2", b.conv("conv2_reduce", x, 64, 1), 192, 3)));
  }
  x = b.inception(x, {"3a", 64, 96, 128, 16, 32, 32});
  x = b.inception(x, {"3b", 128, 128, 192, 32, 96, 64});
  x = b.inception(b.halve(x), {"4a", 192, 96, 208, 16, 48, 64});
  if (o.auxiliary && net.training()) scores.auxiliary.push_back(b.auxiliary("aux1", x, classes));
  x = b.inception(x, {"4b", 160, 112, 224, 24, 64, 64});
  x = b.inception(x, {"4c", 128, 128, 256, 24, 64, 64});
  x = b.inception(x, {"4d", 112, 144, 288, 32, 64, 64});
  if (o.auxiliary && net.training()) scores.auxiliary.push_back(b.auxiliary("aux2", x, classes));
  x = b.inception(x, {"4e", 256, 160, 320, 32, 128, 128});
  x = b.inception(b.halve(x), {"5a", 256, 160, 320, 32, 128, 128});
  x = b.inception(x, {"5b", 384, 192, 384, 48, 128, 128});
  scores.main = net.named("fc").linear(net.dropout(net.global_avg_pool(x), o.dropout), classes);
  return scores;
}

std::unique_ptr<Model> make_googlenet(OptionReader& options, const InputSpec& inputs) {
  const GoogLeNetOptions o{.auxiliary = options.flag("auxiliary", false),
                           .batch_norm = options.flag("batch_norm", false),
                           .small_stem = read_small_stem(options, inputs),
                           .dropout = static_cast<float>(options.number("dropout", 0.4, 0, 0.999))};
  check_one_input("googlenet", options, inputs);
  return classifier(
      "googlenet", options, inputs,
      [o, out = outputs_of(inputs)](nn::Net& net, std::span<const Value> x) { return googlenet(net, x[0], out, o); });
}

}  // namespace echelon::models
