#pragma once
// Codec `auto`: the sum of every member's numbers (coded_sum.h), in the encoding that makes the exchange quickest, or
// as they are where nothing does.
//
// The first exchange measures how fast each candidate encodes and decodes these numbers and predicts its time on the
// measured links (collective/link_costs.h). All members use the slowest member's times, so that all choose alike. A
// candidate is taken if its prediction is at least a tenth below plain numbers. Where members share memory nothing is
// measured: plain numbers are read in place. Afterwards the choice is checked: now and then an exchange is done without
// codec and timed; if the codec has not been quicker, plain numbers are used from then on, and what error feedback
// still holds is added to them. After `measure_again` exchanges everything is measured again. Used by one task.

#include <functional>
#include <string>
#include <vector>

#include "codec/codec.h"
#include "parallel/sum/coded_sum.h"

namespace echelon {

struct NamedCodec {
  std::string name;
  CodecMaker maker;
};

// Reads a [codec] table whose name is auto: `candidates`. Calls its `done`.
std::vector<NamedCodec> read_codec_choice(OptionReader& options);
PartInfo codec_choice_part();  // its row

class AutoSum {
 public:
  using Plain = std::function<void(Group&, std::span<float>)>;

  AutoSum(std::vector<NamedCodec> candidates, const std::vector<CodecPiece>& pieces, int n, int index);

  // In place. `plain` sums without a codec.
  void run(Group& group, std::span<float> values, const CodecStep& step, const Plain& plain);
  // What was taken last; "none" before the first exchange.
  std::string chosen() const { return chosen_ < 0 ? "none" : candidates_[static_cast<std::size_t>(chosen_)].name; }
  std::vector<StateSpan> state();

  static constexpr std::int64_t first_check = 8, check_every = 256, measure_again = 4096;  // exchanges

 private:
  void measure(Group& group, std::span<const float> values, const CodecStep& step);
  void check(Group& group, double plain_seconds);

  std::vector<NamedCodec> candidates_;
  std::vector<CodecPiece> pieces_;
  int n_;
  std::vector<std::unique_ptr<CodedSum>> sums_;  // of every candidate
  std::int64_t chosen_ = -1;                     // -1: none
  std::int64_t since_measured_ = 0;              // exchanges; 0: never measured
  double coded_seconds_ = 0;                     // of exchanges with the chosen codec since the last check
  std::int64_t coded_times_ = 0;
  bool give_back_ = false;  // what error feedback holds, in the next exchange
};

}  // namespace echelon
