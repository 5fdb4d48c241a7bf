#pragma once
// Text from a language model: what is fed to the network, which token is drawn, and what may be printed already.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/program.h"
#include "models/model.h"
#include "tensor/buffer.h"

namespace echelon::cli {

// How a token is drawn from scores.
struct Drawing {
  double temperature = 0.8;  // 0: always the likeliest; 1: as the model believes
  int top_k = 0;             // only among so many likeliest; 0: all
  double top_p = 1;          // only among the fewest likeliest that have this probability together
};
// `uniform` in [0, 1) decides. The same scores and number give the same token.
std::int32_t draw_token(std::span<const float> scores, const Drawing& drawing, float uniform);

// Gives the scores of the next token. A network that carries its state is fed token by token. Any other sees a window
// of at most context() tokens; when it is full, the older half is dropped, so that positions begin at 0 again. With a
// cache, and a network that can do it (models/model.h, decoding), only what is new is computed: keys and values of the
// window's tokens are kept. Without one the whole window is computed every time: the same tokens, more slowly.
class TokenScorer {
 public:
  // All must outlive it.
  TokenScorer(const models::Model& model, const ParameterTable& table, std::span<float> parameters, bool cache);
  ~TokenScorer();

  // Of the token after `tokens`, which begin with what was given before. Valid until the next call.
  std::span<const float> next(std::span<const std::int32_t> tokens);
  bool cached() const { return cached_; }
  void restart();  // for another text

 private:
  void feed(std::int32_t token, std::int64_t position);

  std::int64_t context_;
  std::string input_;
  bool cached_ = false;
  std::size_t start_ = 0, fed_ = 0;  // of the window; tokens that the state holds
  Plan plan_;
  Buffer arena_;
  Executor executor_;
  std::vector<Buffer> state_;
};

// Text as it comes: whole characters only, and nothing that may be the beginning of a stop word.
class TextStream {
 public:
  // `stops` are not empty; `print` is given what is settled.
  TextStream(std::vector<std::string> stops, std::function<void(std::string_view)> print)
      : stops_(std::move(stops)), print_(std::move(print)) {}
  // False as soon as a stop word is complete: the text ends before it.
  bool write(std::string_view bytes);
  void finish();  // prints what was held back
  const std::string& text() const { return text_; }

 private:
  std::vector<std::string> stops_;
  std::function<void(std::string_view)> print_;
  std::string text_;
  std::size_t printed_ = 0;
};

}  // namespace echelon::cli
