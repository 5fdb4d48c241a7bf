// The rule's contribution as it is, in plain numbers.

#include "kernels/vector.h"
#include "parallel/server/push_stage.h"

namespace echelon::exchanges {

namespace {

class ContributionStage : public PushStage {
 public:
  explicit ContributionStage(const PushParts& parts)
      : worker_(parts.worker), numbers_(largest_key(parts.keys) * sizeof(float)) {}
  void process(Push& push) override {
    const std::span<float> out = numbers_.as<float>().first(push.range.count());
    worker_.contribute(push.range, push.share, out);
    push.set(out);
  }

 private:
  WorkerSide& worker_;
  Buffer numbers_;
};

class PlainDecoder : public PushDecoder {
 public:
  explicit PlainDecoder(Range range) : range_(range) {}
  std::span<const float> read(const Message& message) override {
    const std::span<const float> values = message.floats();
    if (values.size() != range_.count())
      fail("rank {} sent {} numbers for key {}, which has {}", message.from, values.size(), message.head.key,
           range_.count());
    return values;
  }

 private:
  Range range_;
};

}  // namespace

void PushDecoder::add(const Message& message, std::span<float> sum) {
  kernels::add_into(sum.data(), read(message).data(), sum.size());
}

std::unique_ptr<PushStage> contribution_stage(const PushParts& parts) {
  return std::make_unique<ContributionStage>(parts);
}
std::unique_ptr<PushDecoder> plain_decoder(const DecoderParts& parts) {
  return std::make_unique<PlainDecoder>(parts.range);
}

}  // namespace echelon::exchanges
