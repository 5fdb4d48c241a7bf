#include "data/flip_labels.h"

#include <cstring>

#include "base/error.h"

namespace echelon::data {

namespace {

class LabelsFlipped : public Dataset {
 public:
  explicit LabelsFlipped(DatasetPtr inner) : Dataset(inner->info()), inner_(std::move(inner)) {
    if (!has_labels(info())) bad_input("labels can be flipped where every sample has one class");
  }
  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    inner_->get(index, context, out);
    std::int32_t label = 0;
    std::memcpy(&label, out[fields().size() - 1], sizeof label);
    label = flipped(label);
    std::memcpy(out[fields().size() - 1], &label, sizeof label);
  }
  std::uint64_t origin(std::uint64_t index, const SampleContext& context) const override {
    return inner_->origin(index, context);
  }
  std::int32_t label(std::uint64_t index) const override { return flipped(inner_->label(index)); }

 private:
  std::int32_t flipped(std::int32_t label) const { return static_cast<std::int32_t>(info().classes) - 1 - label; }
  DatasetPtr inner_;
};

}  // namespace

DatasetPtr labels_flipped(DatasetPtr inner) { return std::make_shared<LabelsFlipped>(std::move(inner)); }

}  // namespace echelon::data
