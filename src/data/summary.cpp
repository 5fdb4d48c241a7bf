#include <algorithm>
#include <cmath>

#include "data/files/catalog.h"

namespace echelon::data {

Summary summarise(const Dataset& dataset, std::uint64_t most) {
  Summary s{.info = dataset.info(), .samples_read = 0, .class_counts = {}, .channels = {}};
  const auto& fields = dataset.fields();
  const int label = find_field(fields, "label");
  if (label >= 0) s.class_counts.assign(static_cast<std::size_t>(s.info.classes), 0);
  const bool real = fields[0].dtype == DType::f32;
  const std::int64_t channels = real && fields[0].name == "image" ? fields[0].shape[0] : 1;
  const auto each = static_cast<std::size_t>(fields[0].shape.elements() / channels);
  if (real) s.channels.resize(static_cast<std::size_t>(channels), {0, 0, INFINITY, -INFINITY});
  std::vector<double> squares(s.channels.size());
  Sample sample(fields);
  s.samples_read = std::min(most, dataset.size());
  for (std::uint64_t i = 0; i < s.samples_read; ++i) {
    dataset.get(static_cast<std::uint64_t>(static_cast<unsigned __int128>(i) * dataset.size() / s.samples_read), {},
                sample.ref());
    if (label >= 0)
      ++s.class_counts[static_cast<std::size_t>(sample.field<std::int32_t>(static_cast<std::size_t>(label))[0])];
    for (std::size_t c = 0; c < s.channels.size(); ++c)
      for (const float v : sample.field<float>(0).subspan(c * each, each)) {
        s.channels[c].mean += v;
        squares[c] += static_cast<double>(v) * v;
        s.channels[c].least = std::min<double>(s.channels[c].least, v);
        s.channels[c].most = std::max<double>(s.channels[c].most, v);
      }
  }
  const double count = static_cast<double>(s.samples_read) * static_cast<double>(each);
  for (std::size_t c = 0; c < s.channels.size(); ++c) {
    s.channels[c].mean /= count;
    s.channels[c].deviation = std::sqrt(std::max(0.0, squares[c] / count - s.channels[c].mean * s.channels[c].mean));
  }
  return s;
}

}  // namespace echelon::data
