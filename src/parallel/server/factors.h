#pragma once
// Pushes in which fully connected layers travel as factors (Project Adam): a worker sends a layer's errors and inputs
// where these are fewer numbers than the gradient, and the server multiplies them.
//
// A message has its key's parameters in order, each either as plain numbers or, if it is such a layer, as errors and
// then inputs, a row of each for every row of the batch. The last number is how many samples they are of: from it both
// sides know which layers are factors, and where each of them begins.

#include <span>
#include <vector>

#include "parallel/exchange.h"
#include "parallel/server/keys.h"

namespace echelon::exchanges {

bool factors_are_smaller(const ThinProduct& product, std::size_t samples);

class FactorMessage {
 public:
  // `products`: of the model; those within the key count, and none lies across its ends.
  FactorMessage(Range key, const std::vector<ThinProduct>& products);

  struct Part {
    Range range;            // of the model
    std::size_t product;    // its number, or `none`
    std::size_t at, count;  // in the message
  };
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // What a message of so many samples has, in order.
  template <typename F>
  void for_each_part(std::size_t samples, const F& f) const {
    std::size_t at = 0;
    for (const Section& s : sections_) {
      const bool factors = s.number != none && factors_are_smaller(s.product, samples);
      const std::size_t count =
          factors ? samples * s.product.rows * (s.product.out + s.product.in) : s.product.range.count();
      f(Part{s.product.range, factors ? s.number : none, at, count}, s.product);
      at += count;
    }
  }
  std::size_t floats(std::size_t samples) const;  // never fewer for more samples
  std::size_t most_floats() const { return key_.count() + 1; }

  // out = the key's gradient. Failure if the message makes no sense. Returns what the products cost, in floating-point
  // operations.
  double read(std::span<const float> message, std::span<float> out, Buffer& scratch) const;

 private:
  struct Section {        // of the key
    ThinProduct product;  // plain numbers: only its range
    std::size_t number = none;
  };
  Range key_;
  std::vector<Section> sections_;
};

// A worker's pushes of one step, by key. Takes the factors from the trainer as they are computed.
class FactorPushes {
 public:
  FactorPushes(ReplicaTrainer& trainer, std::span<const Key> keys);

  // Before the gradient is computed, of so many samples; it goes out multiplied by `share`.
  void begin(std::size_t samples, double share);
  // When the gradient is complete. Good until the next step.
  std::span<const float> message(std::size_t key, WorkerSide& worker);

 private:
  struct Place {  // of a layer's rows in this step
    ThinProduct product;
    float *errors = nullptr, *inputs = nullptr;  // null: it goes as plain numbers
  };
  bool take(const ShardFactors& factors);

  std::vector<FactorMessage> messages_;  // by key
  std::vector<Buffer> values_;           // the same
  std::vector<Place> places_;            // by product
  std::size_t samples_ = 0;
  double share_ = 1;
};

}  // namespace echelon::exchanges
