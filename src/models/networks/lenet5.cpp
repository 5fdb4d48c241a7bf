#include "models/networks/lenet5.h"

#include "models/networks/image.h"

namespace echelon::models {

Value lenet5(nn::Net& net, Value x, std::int64_t classes) {
  x = as_image(net, x);
  x = net.max_pool(net.relu(net.named("conv1").conv2d(x, 6, {.kernel = 5, .padding = 2})), 2);
  x = net.max_pool(net.relu(net.named("conv2").conv2d(x, 16, {.kernel = 5})), 2);
  x = net.flatten(x);
  x = net.relu(net.named("fc1").linear(x, 120));
  x = net.relu(net.named("fc2").linear(x, 84));
  return net.named("fc3").linear(x, classes);
}

std::unique_ptr<Model> make_lenet5(OptionReader& options, const InputSpec& inputs) {
  return classifier("lenet5", options, inputs,
                    [out = outputs_of(inputs)](nn::Net& net, Value x) { return lenet5(net, x, out); });
}

}  // namespace echelon::models
