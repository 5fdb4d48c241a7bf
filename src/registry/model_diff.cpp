#include "registry/model_diff.h"

#include <cmath>
#include <map>

namespace echelon {

namespace {

struct Sums {
  double first = 0, second = 0, product = 0, difference = 0;  // of squares, but for the product
  double distance() const { return first > 0 ? std::sqrt(difference / first) : difference > 0 ? INFINITY : 0; }
};

Sums sums_of(const std::vector<float>& a, const std::vector<float>& b) {
  Sums s;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    s.first += x * x, s.second += y * y, s.product += x * y, s.difference += (x - y) * (x - y);
  }
  return s;
}

}  // namespace

ModelDifference compare_weights(SafetensorsFile& first, SafetensorsFile& second) {
  std::map<std::string, std::pair<const StoredTensor*, const StoredTensor*>> both;
  for (const StoredTensor& t : first.tensors()) both[t.name].first = &t;
  for (const StoredTensor& t : second.tensors()) both[t.name].second = &t;
  ModelDifference result;
  Sums all;
  for (const auto& [name, pair] : both) {
    const auto [a, b] = pair;
    TensorDifference d{.name = name, .first = a ? to_string(a->shape) : "", .second = b ? to_string(b->shape) : ""};
    if (!a || !b || d.first != d.second || a->stored != b->stored) {
      result.same_architecture = result.same_weights = false;
    } else {
      std::vector<std::byte> x(a->bytes), y(b->bytes);
      first.read(*a, x), second.read(*b, y);
      d.same_bits = x == y;
      result.same_weights = result.same_weights && d.same_bits;
      if (SafetensorsFile::is_float(*a)) {
        const Sums s = sums_of(first.read_floats(*a), second.read_floats(*b));
        d.distance = s.distance();
        d.cosine = s.first > 0 && s.second > 0 ? s.product / std::sqrt(s.first * s.second) : 1;
        all.first += s.first, all.difference += s.difference;
      }
    }
    result.tensors.push_back(std::move(d));
  }
  result.distance = all.distance();
  return result;
}

Json to_json(const ModelDifference& difference) {
  Json tensors = Json::array();
  for (const TensorDifference& d : difference.tensors)
    tensors.push_back({{"name", d.name},
                       {"first", d.first},
                       {"second", d.second},
                       {"same_bits", d.same_bits},
                       {"distance", d.distance},
                       {"cosine", d.cosine}});
  return {{"same_architecture", difference.same_architecture},
          {"same_weights", difference.same_weights},
          {"distance", difference.distance},
          {"tensors", tensors}};
}

}  // namespace echelon
