#pragma once
// A text as samples for a language model: "tokens" i32 [length] and "targets" i32 [length], the same moved on by one.
// The first part of the text trains, the last tests; what is for validation lies between.

#include <memory>

#include "data/dataset.h"
#include "data/files/source.h"
#include "data/vocabulary.h"

namespace echelon::data {

struct TextOptions {
  enum class Level { byte, character, bpe, word } level = Level::character;
  std::int64_t length = 64;  // tokens in a sample
  // random   sample i of an epoch is a window at a random place: a pure function of (seed, epoch, i)
  // tiled    windows side by side, every token a target once (a last piece shorter than a window is left out)
  // streams  `streams` contiguous texts read side by side: sample k * streams + b is window k of stream b, and follows
  //          window k - 1. For truncated backpropagation through time; must not be shuffled
  enum class Windows { random, tiled, streams } windows = Windows::tiled;
  std::int64_t streams = 1;
  std::int64_t samples = 0;                      // in an epoch of random windows; 0: as many as tiled ones
  double train_fraction = 0.9;                   // of the tokens; 1: all train, and the split "test" is refused
  double validation_fraction = 0;                // of the tokens, before those of the test
  std::int64_t tokens = 4096;                    // bpe, word: how many at most
  std::shared_ptr<const Vocabulary> vocabulary;  // null: bytes, the whole text's characters, or pairs or words of the
                                                 // part that trains
};

// The vocabulary that the options make of a text. Bytes and words of the part that tests are not looked at.
Vocabulary make_vocabulary(std::string_view text, std::string_view name, const TextOptions& options);

// BadInput if the text is shorter than one window, or not UTF-8 at character level.
std::shared_ptr<const Dataset> read_text_dataset(const SourcePtr& source, const std::string& split,
                                                 const TextOptions& options);

}  // namespace echelon::data
