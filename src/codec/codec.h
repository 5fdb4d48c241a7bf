#pragma once
// Numbers in fewer bytes. A codec turns a run of float32 (a gradient, or the change of some weights) into bytes and
// back. It knows nothing of workers or wires; an instance belongs to one sender and one run of numbers, because lossy
// codecs remember what they have left out (error feedback) and carry it into the next call.
//
// The bytes describe themselves as far as a decoder of the same settings needs: `add` and `decode` need no state, and
// check every byte (they come from a wire): Failure if they make no sense, and never a read or write out of bounds.
//
// One instance is used by one task at a time. `encode`, `add` and `decode` allocate nothing once the largest run has
// been seen. A new codec is a file in codec/codecs/ and a line in the table of codec/codecs.cpp
// (docs/adding-a-system.md).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/part.h"
#include "base/random.h"
#include "base/state.h"

namespace echelon {

// One of the pieces of which a codec's numbers consist, one after the other: a parameter, or a part of it. Codecs with
// a scale for each layer have one for each piece. A matrix has rows and columns (low rank needs them); for anything
// else `rows` is 1. Half a matrix is no matrix, but still has whole rows.
struct CodecPiece {
  std::size_t size = 0;
  std::size_t rows = 1;  // size = rows * columns
  std::size_t row = 0;   // of a matrix that was cut: the length of its rows,
  std::size_t head = 0;  // and how much of a row lies before the first that begins here
};

// What changes from call to call.
struct CodecStep {
  std::int64_t number = 0;  // of the exchange, from 0
  double epoch = 0;         // for warm-ups
  Stream random;            // for stochastic rounding: another one in every call and for every sender
};

// What a codec is to be used for, in the words of who composes a system.
struct CodecUse {
  std::string codec;       // its name, for messages
  bool candidate = false;  // it is one of codec.candidates
  std::string rule;        // the name of the rule whose contributions it encodes
  bool weights = false;    // which are weights, not changes of them
  bool optimizer_has_momentum = false;
};

class Codec {
 public:
  struct Traits {
    bool lossless = false;  // decode gives back the same bits
    bool unbiased = false;  // its expectation is the input
    bool sparse = false;    // most numbers are left out: the bytes of a sum of n are not those of one
    bool matrices = false;  // needs them whole: of parts of one it makes no fewer bytes
    bool momentum = false;  // what it sends has momentum in it
    bool weights = false;   // precise enough for weights themselves, not only for changes of them
  };
  using State = StateSpan;

  virtual ~Codec() = default;
  virtual Traits traits() const = 0;
  // Adds one problem for each reason why it cannot be used for that, with a cure.
  virtual void accepts(const CodecUse& use, Problems& problems) const;
  virtual std::size_t most_bytes() const = 0;  // that `encode` can write
  // The bytes that it is expected to write, for cost models; exact where the size does not depend on the numbers.
  virtual double usual_bytes() const { return static_cast<double>(most_bytes()); }
  // `encode` writes most_bytes() always, so that receivers need not be told.
  virtual bool same_size_always() const { return false; }
  // Returns the number of bytes written to `out`, which has room for most_bytes().
  virtual std::size_t encode(std::span<const float> values, const CodecStep& step, std::span<std::byte> out) = 0;
  // The same, and what the bytes do not say stays in `values`: values[i] -= what they say of number i.
  virtual std::size_t encode_rest(std::span<float> values, const CodecStep& step, std::span<std::byte> out);
  // The same of a sum: values[i] += more[i] before anything else. What error feedback does in every call; codecs that
  // can do both while the numbers are in the nearest cache override it.
  virtual std::size_t encode_sum(std::span<float> values, std::span<const float> more, const CodecStep& step,
                                 std::span<std::byte> out);
  // out[i] += scale * what the bytes say of number i.
  virtual void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const = 0;
  // out[i] = what the bytes say of number i. The same as `add` to zeros unless overridden.
  virtual void decode(std::span<const std::byte> bytes, std::span<float> out) const;
  // out[i] = 0 for every number that the bytes speak of (all of them, unless the codec is sparse).
  void clear_sent(std::span<const std::byte> bytes, std::span<float> out) const;
  // Of sparse codecs: f(i, what the bytes say of number i) for every number that they speak of, in rising order.
  using Sent = std::function<void(std::size_t i, float value)>;
  virtual void each_sent(std::span<const std::byte> bytes, const Sent& f) const;
  // What it remembers between calls, for checkpoints: lives as long as the codec, always the same size.
  virtual std::vector<State> state() { return {}; }
};

// Makes one for a run of numbers. Pieces may be empty lists (a worker that owns nothing).
using CodecMaker = std::function<std::unique_ptr<Codec>(const std::vector<CodecPiece>& pieces)>;

// Reads a recipe's [codec] table: `name` and the settings of that codec and of the wrappers around it (error_feedback,
// momentum, warm-up, entropy; docs/systems.md). Problems are added to the reader's; calls its `done`.
CodecMaker read_codec(OptionReader& options);

std::vector<PartInfo> codec_parts();  // every codec there is, with its settings and those of the wrappers
std::vector<std::string> codec_names();

}  // namespace echelon
