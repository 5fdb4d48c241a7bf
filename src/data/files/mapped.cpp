#include <array>

#include "base/error.h"
#include "data/images/transform.h"
#include "data/scratch.h"

namespace echelon::data {

namespace {

class Mapped : public Dataset {
 public:
  Mapped(DatasetPtr inner, std::vector<TransformPtr> chain)
      : Dataset(inner->info()), inner_(std::move(inner)), chain_(std::move(chain)) {
    before_.push_back(fields());
    for (const auto& t : chain_) {
      before_.push_back(t->fields(before_.back()));
      if (before_.back() != *(before_.end() - 2)) last_change_ = static_cast<int>(before_.size()) - 2;
      if (before_.back().size() > most_fields) bad_input("a sample has at most {} fields", most_fields);
      if (info().inputs > 1 && before_.back().size() != fields().size())
        bad_input("fields cannot be added to samples with {} inputs", info().inputs);
      info().random |= t->random();
    }
    info().fields = before_.back();
  }

  // Stages that change the fields read from scratch memory; after the last of them everything happens in place, in the
  // caller's memory.
  void get(std::uint64_t index, const SampleContext& context, SampleRef out) const override {
    if (last_change_ < 0)
      inner_->get(index, context, out);
    else
      change_fields(0, index, context, {}, out);
    for (int stage = last_change_ + 1; stage < static_cast<int>(chain_.size()); ++stage)
      step(stage, index, context, out, out);
  }

  std::uint64_t origin(std::uint64_t index, const SampleContext& context) const override {
    return inner_->origin(index, context);
  }
  std::int32_t label(std::uint64_t index) const override { return inner_->label(index); }  // transforms keep it

 private:
  // Makes the sample before stage `from` in scratch memory (out of `previous`, or of the inner data set), goes on in
  // place up to the next stage that changes the fields, and applies that one: into `out` if it is the last of them.
  void change_fields(int from, std::uint64_t index, const SampleContext& context, SampleRef previous,
                     SampleRef out) const {
    const auto& fields = before_[static_cast<std::size_t>(from)];
    std::size_t bytes = 0;
    for (const auto& f : fields) bytes += aligned(f.bytes());
    Scratch memory(bytes);
    std::array<std::byte*, most_fields> pointers{};
    std::byte* place = memory.data();
    for (std::size_t f = 0; f < fields.size(); ++f) pointers[f] = place, place += aligned(fields[f].bytes());
    const SampleRef here{pointers.data(), fields.size()};
    if (from == 0)
      inner_->get(index, context, here);
    else
      step(from - 1, index, context, previous, here);
    int stage = from;
    while (before_[static_cast<std::size_t>(stage)] == before_[static_cast<std::size_t>(stage) + 1])
      step(stage++, index, context, here, here);
    if (stage == last_change_)
      step(stage, index, context, here, out);
    else
      change_fields(stage + 1, index, context, here, out);
  }

  void step(int stage, std::uint64_t index, const SampleContext& context, SampleRef in, SampleRef out) const {
    // The stream's 32-bit coordinates take the low half of the index; the high half and the stage go into the layer.
    const auto layer = stream_layer("data.transform") + static_cast<std::uint32_t>(stage) * 0x9E3779B9u +
                       static_cast<std::uint32_t>(index >> 32) * 0x85EBCA6Bu;
    const Stream random(
        {.seed = context.seed, .step = context.epoch, .shard = static_cast<std::uint32_t>(index), .layer = layer});
    chain_[static_cast<std::size_t>(stage)]->apply(before_[static_cast<std::size_t>(stage)], in, out, random);
  }

  DatasetPtr inner_;
  std::vector<TransformPtr> chain_;
  std::vector<std::vector<Field>> before_;  // [i]: the fields before stage i; the last: after all
  int last_change_ = -1;                    // the last stage that changes the fields
};

}  // namespace

DatasetPtr mapped(DatasetPtr inner, std::vector<TransformPtr> chain) {
  if (chain.empty()) return inner;
  return std::make_shared<Mapped>(std::move(inner), std::move(chain));
}

}  // namespace echelon::data
