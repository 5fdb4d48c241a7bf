#include "models/networks/tabular.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph/ops/shape.h"

namespace echelon::models {

std::int64_t embedding_width(std::int64_t categories) {
  const auto wide = static_cast<std::int64_t>(std::ceil(4 * std::sqrt(std::sqrt(static_cast<double>(categories)))));
  return std::clamp<std::int64_t>(wide, 1, std::max<std::int64_t>(1, categories));
}

Value tabular(nn::Net& net, std::span<const Value> inputs, const InputSpec& spec, std::int64_t out,
              const TabularOptions& o) {
  std::vector<Value> row;
  int column = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (spec.inputs[i].type.dtype == DType::f32) {
      row.push_back(net.shape(inputs[i]).rank() == 2 ? inputs[i] : net.flatten(inputs[i]));
      continue;
    }
    const std::vector<std::int64_t>& categories = spec.inputs[i].categories;
    for (std::size_t k = 0; k < categories.size(); ++k) {
      const auto at = static_cast<std::int64_t>(k);
      const Value ids = net.reshape(ops::slice(net.graph(), inputs[i], 1, at, at + 1), {});
      const std::int64_t width = o.embedding > 0 ? o.embedding : embedding_width(categories[k]);
      row.push_back(net.named(fmt::format("embedding{}", ++column)).embedding(ids, categories[k], width));
    }
  }
  return mlp(net, row.size() == 1 ? row[0] : net.concat(row), out, o.mlp);
}

std::unique_ptr<Model> make_tabular(OptionReader& options, const InputSpec& inputs) {
  const TabularOptions o{.mlp = read_mlp(options, {128, 64}), .embedding = options.integer("embedding", 0, 0, 1 << 12)};
  for (const auto& field : inputs.inputs) {
    const bool ids = field.type.dtype == DType::i32;
    if (ids &&
        (field.type.shape.rank() != 1 || static_cast<std::int64_t>(field.categories.size()) != field.type.shape[0]))
      options.problem("name",
                      fmt::format("is tabular, which needs to know how many categories each column has, but the "
                                  "data set's '{}' is {} without that",
                                  field.name, to_string(field.type)));
  }
  return classifier("tabular", options, inputs,
                    [o, inputs, out = outputs_of(inputs)](nn::Net& net, std::span<const Value> x) {
                      return Scores{tabular(net, x, inputs, out, o), {}, 0};
                    });
}

}  // namespace echelon::models
