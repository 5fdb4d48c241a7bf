#pragma once
// A small network of each kind, with data for it and any update rule: what the tests of training run.

#include <cstring>
#include <string>
#include <vector>

#include "data/formats/synthetic.h"
#include "models/zoo.h"
#include "optim/optim.h"

namespace echelon::test {

inline Options table(std::initializer_list<std::pair<const std::string, Option>> items) {
  Options o;
  o.items = items;
  return o;
}
inline Option integers(std::initializer_list<std::int64_t> values) {
  Option list;
  std::vector<Option> items;
  for (std::int64_t v : values) items.push_back(Option{v});
  list.value = std::move(items);
  return list;
}
inline Option integer(std::int64_t v) { return Option{v}; }
inline Option number(double v) { return Option{v}; }
inline Option text(const std::string& v) { return Option{v}; }

inline Optim optim(const std::string& name, Options settings = {}) {
  settings.items["name"] = text(name);
  Problems problems;
  OptionReader reader(settings, problems);
  Optim result = read_optim(reader);
  problems.throw_if_any("test");
  return result;
}

// A small network of each kind, with data for it.
struct Case {
  std::string name;
  Options options;
  data::SyntheticOptions data;
};

inline std::vector<Case> cases() {
  using Kind = data::SyntheticOptions::Kind;
  const data::SyntheticOptions images{.kind = Kind::images, .samples = 60, .shape = {3, 32, 32}, .classes = 4};
  const data::SyntheticOptions digits{.kind = Kind::images, .samples = 60, .shape = {1, 28, 28}, .classes = 4};
  const data::SyntheticOptions sequences{.kind = Kind::blobs, .samples = 60, .shape = {5, 6}, .classes = 4};
  const data::SyntheticOptions tokens{.kind = Kind::tokens, .samples = 60, .shape = {9}, .classes = 11};
  return {{"mlp", table({{"hidden", integers({17, 9})}, {"dropout", number(0.2)}}), digits},
          {"lenet5", {}, digits},
          {"resnet20", {}, images},
          {"lstm", table({{"hidden", integer(7)}}), sequences},
          {"gru", table({{"hidden", integer(7)}}), sequences},
          {"gpt", table({{"width", integer(16)}, {"heads", integer(2)}, {"layers", integer(1)}}), tokens},
          {"gan", {}, digits},
          {"autoencoder", {}, digits}};
}

inline models::InputSpec inputs_of(const data::Dataset& d) {
  models::InputSpec spec;
  spec.inputs = {{d.fields()[0].name, Type{d.fields()[0].dtype, d.fields()[0].shape}}};
  if (d.fields().size() > 1) spec.target = {d.fields()[1].name, Type{d.fields()[1].dtype, d.fields()[1].shape}};
  spec.classes = d.info().classes;
  return spec;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace echelon::test
