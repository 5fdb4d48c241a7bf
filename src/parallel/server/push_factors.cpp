// Pushes in which fully connected layers are factors of their gradient (factors.h); the server multiplies them.

#include "parallel/server/factors.h"
#include "parallel/server/push_stage.h"

namespace echelon::exchanges {

namespace {

class FactorStage : public PushStage {
 public:
  explicit FactorStage(const PushParts& parts)
      : worker_(parts.worker),
        in_rounds_(parts.parts.sync->traits().in_rounds),
        pushes_(*parts.parts.trainer, parts.keys) {}
  void begin_step(const StepInfo& info) override { pushes_.begin(info.samples, in_rounds_ ? info.share : 1); }
  void process(Push& push) override { push.set(pushes_.message(push.key, worker_)); }

 private:
  WorkerSide& worker_;
  bool in_rounds_;
  FactorPushes pushes_;
};

class FactorDecoder : public PushDecoder {
 public:
  explicit FactorDecoder(const DecoderParts& parts)
      : world_(*parts.parts.world),
        message_(parts.range, parts.parts.trainer->thin_products()),
        numbers_(parts.numbers()),
        product_(parts.scratch.product) {}
  std::span<const float> read(const Message& message) override {
    world_.compute(message_.read(message.floats(), numbers_, product_));
    return numbers_;
  }

 private:
  World& world_;
  FactorMessage message_;
  std::span<float> numbers_;
  Buffer& product_;
};

}  // namespace

std::unique_ptr<PushStage> factor_stage(const PushParts& parts) { return std::make_unique<FactorStage>(parts); }
std::unique_ptr<PushDecoder> factor_decoder(const DecoderParts& parts) {
  return std::make_unique<FactorDecoder>(parts);
}

}  // namespace echelon::exchanges
