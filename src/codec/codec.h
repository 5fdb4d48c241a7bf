#pragma once
// Gradient compression. A codec encodes a run of float32 numbers (a gradient, or the change of some weights) into fewer
// bytes and decodes them. It knows nothing of workers or networks. An instance belongs to one sender and one run of
// numbers, because lossy codecs keep what they have left out (error feedback) and add it to the next call's numbers.
//
// An encoding contains everything that a decoder with the same settings needs: `add` and `decode` use no state. They
// check every byte, since bytes come from the network: Failure for an invalid encoding, never an access out of bounds.
//
// One instance is used by one task at a time. `encode`, `add` and `decode` allocate nothing once the largest run has
// been seen. docs/adding-a-codec.md adds a codec: a file in codec/codecs/ and a row in the table of codec/codecs.cpp.
//
// The rest of the room: kernels/ (vector loops over numbers), wire/ (formats and packing of bytes), codecs/ (one file
// each), wrappers/ (codecs around another one).

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

// A run of numbers consists of pieces, one after the other: parameters, or parts of parameters. Codecs with a scale per
// layer have one per piece. A matrix has rows and columns (low rank needs them); for anything else `rows` is 1. A part
// of a matrix counts as no matrix, but the length of its rows is known.
struct CodecPiece {
  std::size_t size = 0;
  std::size_t rows = 1;  // size = rows * columns
  std::size_t row = 0;   // of a part of a matrix: the length of the matrix's rows,
  std::size_t head = 0;  // and how many numbers come before the first row that begins in the part
};

// What changes from call to call.
struct CodecStep {
  std::int64_t number = 0;  // of the exchange, from 0
  double epoch = 0;         // for warm-ups
  double share = 1;         // a factor in the numbers already: the sender's part of the whole batch, 1 / n usually
  Stream random;            // for stochastic rounding: a different one in every call and for every sender
};

// What a codec is to be used for, in the words of who composes a system.
struct CodecUse {
  std::string codec;       // its name, for messages
  bool candidate = false;  // it is one of codec.candidates
  std::string rule;        // the name of the rule whose contributions it encodes
  bool weights = false;    // which are weights, not changes of them
  bool optimizer_has_momentum = false;
  bool in_parts = false;  // it gets parts of what a worker contributes, one by one
};

class Codec {
 public:
  struct Traits {
    bool lossless = false;  // decode gives back the same bits
    bool unbiased = false;  // the expectation of what is decoded is the input
    bool sparse = false;    // most numbers are left out: a sum of n encodings takes more bytes than one
    bool matrices = false;  // compresses whole matrices only, not parts of them
    bool momentum = false;  // what it sends includes momentum
    bool whole = false;     // looks at the whole gradient at once, so parts of it cannot be encoded one by one
    bool weights = false;   // precise enough for weights, not only for their changes
  };
  using State = StateSpan;

  virtual ~Codec() = default;
  virtual Traits traits() const = 0;
  // Adds one problem for each reason why it cannot be used for that, with a cure.
  virtual void accepts(const CodecUse& use, Problems& problems) const;
  virtual std::size_t most_bytes() const = 0;  // that `encode` can write
  // The bytes that it is expected to write, for cost models; exact where the size does not depend on the numbers.
  virtual double usual_bytes() const { return static_cast<double>(most_bytes()); }
  // `encode` always writes most_bytes(), so that sizes need not be sent.
  virtual bool same_size_always() const { return false; }
  // Returns the number of bytes written to `out`, which has room for most_bytes().
  virtual std::size_t encode(std::span<const float> values, const CodecStep& step, std::span<std::byte> out) = 0;
  // The same, and leaves the rest in `values`: values[i] -= decoded number i.
  virtual std::size_t encode_rest(std::span<float> values, const CodecStep& step, std::span<std::byte> out);
  // The same for a sum: values[i] += more[i] before anything else, as error feedback does in every call. Codecs that
  // can do both in one pass override it.
  virtual std::size_t encode_sum(std::span<float> values, std::span<const float> more, const CodecStep& step,
                                 std::span<std::byte> out);
  // out[i] += scale * decoded number i.
  virtual void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const = 0;
  // out[i] = decoded number i. The same as `add` to zeros unless overridden.
  virtual void decode(std::span<const std::byte> bytes, std::span<float> out) const;
  // out[i] = 0 for every number in the encoding (all of them, unless the codec is sparse).
  void clear_sent(std::span<const std::byte> bytes, std::span<float> out) const;
  // Sparse codecs only: f(i, decoded number i) for every number in the encoding, in rising order of i.
  using Sent = std::function<void(std::size_t i, float value)>;
  virtual void each_sent(std::span<const std::byte> bytes, const Sent& f) const;
  // Codecs whose encodings are sums of numbers (PowerSGD): all senders encode together, in two rounds, and between
  // their calls the caller sums the numbers of a round over all senders, in place. No numbers: it cannot.
  struct Rounds {
    std::size_t first = 0, second = 0;  // numbers
  };
  virtual Rounds rounds() const { return {}; }
  virtual std::span<float> first_round(std::span<const float> values);
  // After the first round's sum. Leaves what is not sent in `values`, the same run.
  virtual std::span<float> second_round(std::span<float> values);
  virtual void decode_rounds(std::span<float> out);  // after both sums: the sum over all senders
  // What it keeps between calls, for checkpoints: lives as long as the codec, always the same size.
  virtual std::vector<State> state() { return {}; }
};

// Makes a codec for a run of numbers. `pieces` is empty for a worker that owns nothing.
using CodecMaker = std::function<std::unique_ptr<Codec>(const std::vector<CodecPiece>& pieces)>;

// Reads a recipe's [codec] table: `name` and the settings of that codec and of the wrappers around it (error_feedback,
// momentum, warm-up, entropy; docs/systems.md). Problems are added to the reader's; calls its `done`.
CodecMaker read_codec(OptionReader& options);

std::vector<PartInfo> codec_parts();  // every codec there is, with its settings and those of the wrappers
std::vector<std::string> codec_names();

}  // namespace echelon
