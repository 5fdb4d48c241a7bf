#pragma once
// The stages of a worker's pushes (push_stage.h), in order; and the decoder that a server needs for them.

#include <memory>
#include <vector>

#include "parallel/server/push_stage.h"

namespace echelon::exchanges {

class PushChain {
 public:
  explicit PushChain(const PushParts& parts);

  void begin_step(const StepInfo& info);  // before the gradient is computed
  // The gradient is complete: the keys that are pushed in this step, in the order in which they leave. Good until the
  // next call.
  const std::vector<std::uint32_t>& collect(const StepInfo& info);
  // The keys of which something is left, at the end of a round of steps. Good until the next call.
  const std::vector<std::uint32_t>& left_over();
  void process(Push& push);  // fills in its bytes
  std::vector<StateSpan> state();

 private:
  std::size_t key_count_;
  std::vector<std::unique_ptr<PushStage>> stages_;
  std::vector<std::uint32_t> keys_;
};

std::unique_ptr<PushDecoder> make_push_decoder(const DecoderParts& parts);

}  // namespace echelon::exchanges
