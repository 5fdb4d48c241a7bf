// Pushes without the blocks that hardly matter (filter.h).

#include "parallel/server/filter.h"

#include "parallel/server/push_stage.h"

namespace echelon::exchanges {

namespace {

class FilterStage : public PushStage {
 public:
  explicit FilterStage(const PushParts& parts) : parts_(parts.parts) {
    for (const Key& key : parts.keys) filters_.emplace_back(parts.settings.filters, key.range.count());
  }
  void process(Push& push) override {
    const std::span<const float> weights = parts_.view().weights.subspan(push.range.begin, push.range.count());
    push.bytes =
        filters_[push.key].write(push.numbers, weights, push.rate, parts_.random("filter", push.info.clock, push.key));
  }
  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    for (std::size_t k = 0; k < filters_.size(); ++k)
      add_states(all, fmt::format("filter {} ", k), filters_[k].state());
    return all;
  }

 private:
  const ExchangeParts& parts_;
  std::vector<PushFilter> filters_;  // by key
};

class FilterDecoder : public PushDecoder {
 public:
  explicit FilterDecoder(const DecoderParts& parts) : numbers_(parts.numbers()) {
    for (int w = 0; w < parts.parts.workers(); ++w) readers_.emplace_back(parts.settings.filters, parts.range.count());
  }
  std::span<const float> read(const Message& message) override {
    readers_[static_cast<std::size_t>(message.from)].read(message.payload(), numbers_);
    return numbers_;
  }
  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all;
    for (std::size_t w = 0; w < readers_.size(); ++w)
      add_states(all, fmt::format("filter {} ", w), readers_[w].state());
    return all;
  }

 private:
  std::span<float> numbers_;
  std::vector<FilterReader> readers_;  // by worker
};

}  // namespace

std::unique_ptr<PushStage> filter_stage(const PushParts& parts) { return std::make_unique<FilterStage>(parts); }
std::unique_ptr<PushDecoder> filter_decoder(const DecoderParts& parts) {
  return std::make_unique<FilterDecoder>(parts);
}

}  // namespace echelon::exchanges
