#pragma once
// What happens to a push on its way. At a worker a push passes a chain of stages, which is assembled once
// (push_chain.h): the first one makes the numbers, further ones choose what leaves and how it looks on the wire.
//
//   contribution   the rule's contribution, as it is                              push_contribution.cpp
//   merge          those of n_push steps, added up                                push_merge.cpp
//   budget         those slices that matter most; the others are added up         push_merge.cpp
//   factors        fully connected layers as factors of their gradient            push_factors.cpp
//   codec          encoded                                                        push_codec.cpp
//   filter         without the blocks that hardly matter                          push_filter.cpp
//
// At a server a PushDecoder undoes what a stage has done to the bytes. Each stage's file has both sides.
//
// The worker's thread, or the task that sends for it, uses a stage; a server's task uses a decoder.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "parallel/exchange.h"
#include "parallel/server/keys.h"

namespace echelon::exchanges {

struct Push {  // of one key
  std::uint32_t key = 0;
  Range range;
  StepInfo info;
  std::int64_t number = 0;                // times that this worker has pushed before
  double share = 1;                       // by which the contribution is multiplied
  double rate = 0;                        // about how far the server will move the weights, times the numbers
  std::span<const float> numbers = {};    // good until the next push
  std::span<const std::byte> bytes = {};  // the same: what is sent

  void set(std::span<const float> values) { numbers = values, bytes = std::as_bytes(values); }
};

class PushStage {
 public:
  virtual ~PushStage() = default;
  virtual void begin_step(const StepInfo&) {}                   // before the gradient is computed
  virtual void collect(const StepInfo&) {}                      // the gradient is complete
  virtual void choose(std::vector<std::uint32_t>& /*keys*/) {}  // leaves those that are pushed in this step
  // Adds the keys of which something was collected and not pushed, at the end of a round of steps.
  virtual void left_over(std::vector<std::uint32_t>& /*keys*/) {}
  virtual void process(Push& push) = 0;
  virtual std::vector<StateSpan> state() { return {}; }
};

// Of one key at a server. Failure for bytes that make no sense.
class PushDecoder {
 public:
  virtual ~PushDecoder() = default;
  virtual std::span<const float> read(const Message& message) = 0;  // good until the next message
  virtual void add(const Message& message, std::span<float> sum);   // sum += read(message)
  virtual std::vector<StateSpan> state() { return {}; }
};

// What stages are made from. Everything outlives them.
using KeyCodecs = std::vector<std::unique_ptr<Codec>>;  // by key; empty: plain numbers
KeyCodecs make_key_codecs(const ExchangeParts& parts, std::span<const Key> keys);
struct PushParts {
  const ServerSettings& settings;
  const ExchangeParts& parts;
  std::span<const Key> keys;
  WorkerSide& worker;
  KeyCodecs& codecs;
  double bandwidth;  // as ServerMap's
};
std::unique_ptr<PushStage> contribution_stage(const PushParts& parts);
std::unique_ptr<PushStage> merge_stage(const PushParts& parts);
std::unique_ptr<PushStage> budget_stage(const PushParts& parts);
std::unique_ptr<PushStage> factor_stage(const PushParts& parts);
std::unique_ptr<PushStage> codec_stage(const PushParts& parts);
std::unique_ptr<PushStage> filter_stage(const PushParts& parts);

// What decoders are made from. Everything outlives them; `scratch` belongs to all decoders of a server.
struct DecoderScratch {
  Buffer numbers;  // of the largest key
  Buffer product;
};
struct DecoderParts {
  const ServerSettings& settings;
  const ExchangeParts& parts;
  Range range;  // of the key
  DecoderScratch& scratch;
  std::span<float> numbers() const { return scratch.numbers.as<float>().first(range.count()); }
};
std::unique_ptr<PushDecoder> plain_decoder(const DecoderParts& parts);
std::unique_ptr<PushDecoder> factor_decoder(const DecoderParts& parts);
std::unique_ptr<PushDecoder> codec_decoder(const DecoderParts& parts);
std::unique_ptr<PushDecoder> filter_decoder(const DecoderParts& parts);

std::size_t largest_key(std::span<const Key> keys);  // in numbers

}  // namespace echelon::exchanges
