#include <fmt/format.h>

#include "data/kinds.h"

namespace echelon::data {

namespace {

using Make = std::function<TransformPtr(bool augment)>;

Make read_crop(OptionReader& table) {
  Crop crop;
  const auto size = table.integers("size", {}, 1, 1 << 20);  // one side, or height and width
  if (size.size() > 2) table.problem("size", "must be one number, or height and width");
  if (!size.empty()) crop.height = size.front(), crop.width = size.back();
  crop.pad = table.integer("pad", 0, 0, 1 << 20);
  const bool changes = !size.empty();
  return [=](bool augment) -> TransformPtr {
    if (!augment && !changes) return nullptr;
    Crop calm = crop;
    calm.centre = !augment;
    return make_crop(calm);
  };
}

Make read_normalise(OptionReader& table) {
  table.require("mean", "normalising subtracts it");
  table.require("std", "normalising divides by it");
  const auto means = table.numbers("mean", {0}), deviations = table.numbers("std", {1}, 1e-30);
  if (means.size() != deviations.size())
    table.problem("std", fmt::format("has {} numbers, but mean has {}", deviations.size(), means.size()));
  const std::vector<float> mean(means.begin(), means.end()), deviation(deviations.begin(), deviations.end());
  return [=](bool) { return make_normalise(mean, deviation); };
}

Make read_copy(OptionReader& table) {
  const std::string from = table.text("from", "image"), to = table.text("to", "target");
  return [=](bool) { return make_copy(from, to); };
}

template <typename M>
Make only_augmenting(M make) {
  return [=](bool augment) -> TransformPtr {
    if (!augment) return nullptr;
    return make();
  };
}

}  // namespace

Make read_transform(OptionReader& table) {
  if (!table.require("kind", "say which transform it is, such as \"flip\"")) return nullptr;
  const std::string kind = table.choice(
      "kind", "",
      {"crop", "flip", "shift", "rotate", "zoom", "colour", "erase", "cutout", "noise", "normalise", "copy", "mixup"});
  Make make;
  if (kind == "crop") {
    make = read_crop(table);
  } else if (kind == "flip") {
    const auto p = static_cast<float>(table.number("probability", 0.5, 0, 1));
    make = only_augmenting([=] { return make_flip(p); });
  } else if (kind == "shift") {
    const auto most = table.integer("most", 2, 0, 1 << 20);
    make = only_augmenting([=] { return make_shift(most); });
  } else if (kind == "rotate") {
    const double most = table.number("most", 15, 0, 180);
    make = only_augmenting([=] { return make_rotate(most); });
  } else if (kind == "zoom") {
    const double most = table.number("most", 0.2, 0, 0.99);
    make = only_augmenting([=] { return make_zoom(most); });
  } else if (kind == "colour") {
    const ColourChange most{.brightness = table.number("brightness", 0.2, 0, 1),
                            .contrast = table.number("contrast", 0.2, 0, 1),
                            .saturation = table.number("saturation", 0.2, 0, 1)};
    make = only_augmenting([=] { return make_colour(most); });
  } else if (kind == "erase") {
    const double p = table.number("probability", 0.5, 0, 1), least = table.number("least", 0.02, 1e-6, 1),
                 most = table.number("most", 0.33, 1e-6, 1);
    if (least > most) table.problem("least", fmt::format("= {} is more than most = {}", least, most));
    make = only_augmenting([=] { return make_erase(p, least, most); });
  } else if (kind == "cutout") {
    const auto extent = table.integer("size", 8, 1, 1 << 20);
    make = only_augmenting([=] { return make_cutout(extent); });
  } else if (kind == "noise") {
    // Where a clean copy is the target, noise is the task and not augmentation: then it stays when evaluating.
    const auto deviation = static_cast<float>(table.number("deviation", 0.1, 0, 1e6));
    const bool always = table.flag("always", false);
    make = [=](bool augment) -> TransformPtr { return augment || always ? make_noise(deviation) : nullptr; };
  } else if (kind == "normalise") {
    make = read_normalise(table);
  } else if (kind == "copy") {
    make = read_copy(table);
  }
  if (make) table.done();
  return make;
}

}  // namespace echelon::data
