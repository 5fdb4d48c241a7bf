#pragma once
// Recurrent networks: classifiers that read a sequence and answer at its end, and language models whose state flows
// from one step into the next (truncated back-propagation through time).

#include "models/network.h"

namespace echelon::models {

enum class Cell { rnn, lstm, gru };

struct RecurrentOptions {
  Cell cell = Cell::lstm;
  std::int64_t hidden = 256;
  int layers = 1;
  std::int64_t embedding = 64;  // the width of a token's vector
  float dropout = 0;
};

// x: numbers [N, T, F]; images [N, C, H, W], read row by row; or tokens i32[N, T] of `vocabulary`.
Value recurrent_classifier(nn::Net& net, Value x, std::int64_t classes, std::int64_t vocabulary,
                           const RecurrentOptions& options);
// tokens [N, T] -> [N, T, vocabulary], state carried.
Value char_rnn(nn::Net& net, Value tokens, std::int64_t vocabulary, const RecurrentOptions& options);

std::unique_ptr<Model> make_recurrent_classifier(Cell cell, OptionReader& options, const InputSpec& inputs);
std::unique_ptr<Model> make_char_rnn(Cell cell, OptionReader& options, const InputSpec& inputs);

}  // namespace echelon::models
