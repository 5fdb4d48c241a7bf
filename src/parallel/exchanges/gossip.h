#pragma once
// Messages between equals. Before each step a replica merges all that has come since the last; when an exchange is due
// it sends its weights to those that its circle names. No worker waits for another one. A message that would queue up
// behind `window` others on the same link is left out, for the next one will be fresher: a slow link slows no worker
// down.

#include <functional>
#include <memory>
#include <vector>

#include "parallel/exchange.h"
#include "parallel/team/message_wait.h"

namespace echelon::exchanges {

// How many messages of that size may be on their way to one peer. `setting`: a recipe's window; 0: eight small ones, or
// as many as make up a megabyte, so that what waits for a slow link is never very old.
std::size_t window_for(std::int64_t setting, std::size_t message_bytes);

// The whole model in a codec's bytes, or as plain numbers.
class ModelCoder {
 public:
  explicit ModelCoder(const ExchangeParts& parts);
  std::size_t most_bytes() const;
  std::size_t encode(std::span<const float> weights, const CodecStep& step, std::span<std::byte> out);
  // The plain numbers are where they came; others are in memory of the coder's. Failure if the bytes make no sense.
  std::span<const float> decode(std::span<const std::byte> bytes, Rank from);
  bool is_plain() const { return !codec_; }
  std::vector<StateSpan> state();

 private:
  std::size_t floats_;
  std::unique_ptr<Codec> codec_;
  Buffer decoded_;
};

// Refuses rules that are not between equals; `c`'s exchange is.
void refuse_common_place(const Composition& c, Problems& problems);

// What came with a message must be a number that weights can be weighted with: Failure if not.
double checked_weight(double weight, Rank from);

// Whom a rank writes to, and from whom it may get messages.
struct Circle {
  std::vector<Rank> readers;  // all ranks that it may ever send to
  std::vector<Rank> writers;  // who may write to it
  // Those of exchange number `number`; `random` is this rank's and step's.
  std::function<void(std::int64_t number, const Stream& random, std::vector<Rank>& to)> choose;
};

class Gossip : public Exchange {
 public:
  Gossip(ExchangeParts parts, Circle circle, std::int64_t window);
  void before_step(const StepInfo& info) override;
  double exchange(const StepInfo& info) override;
  void drain() override;
  double peer_weight() const override { return peer_->weight(); }
  std::vector<StateSpan> state() override;

 private:
  void take(const Message& message, std::int64_t clock);

  ExchangeParts parts_;
  Circle circle_;
  std::unique_ptr<PeerSide> peer_;
  ModelCoder coder_;
  std::size_t window_;
  Buffer bytes_;
  std::vector<Rank> to_;
  std::int64_t exchanges_ = 0, clock_ = 0;
  int merged_ = 0;  // since the last step
  MessageWait message_wait_;
  std::vector<char> flushed_;  // by rank: its last message of the round has come
};

}  // namespace echelon::exchanges
