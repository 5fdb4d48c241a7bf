// Any text is either refused with BadInput or is, byte by byte, what writing its vocabulary gives; and any text is
// either refused with BadInput or has characters that spell it again.

#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "data/vocabulary.h"

int fuzz_vocabulary(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::optional<data::Vocabulary> stored;
  try {
    stored = data::Vocabulary::from_text(text);
  } catch (const BadInput&) {
  }
  if (stored) {
    invariant(stored->to_text() == text, "a vocabulary was accepted that nobody wrote");
    std::vector<std::int32_t> tokens(stored->size());
    std::iota(tokens.begin(), tokens.end(), 0);
    if (stored->level() == "character" || stored->level() == "byte")
      invariant(stored->encode(stored->decode(tokens), "again") == tokens, "a token is no character");
    if (stored->level() == "bpe") {  // any bytes come back, whatever the pairs are
      const std::string bytes = stored->decode(tokens);
      invariant(stored->decode(stored->encode(bytes, "again")) == bytes, "bytes change when encoded and decoded");
    }
    if (stored->level() == "word")  // every word but the unknown one is itself
      for (const std::int32_t token : std::span(tokens).subspan(1))
        invariant(stored->encode(stored->decode(std::span(&token, 1)), "again") == std::vector{token},
                  "a word is not one token");
  }
  try {
    const auto characters = data::Vocabulary::characters(text, "input");
    invariant(characters.decode(characters.encode(text, "input")) == text, "a text changes when encoded and decoded");
    invariant(data::Vocabulary::from_text(characters.to_text()) == characters, "a vocabulary is read as it is written");
    invariant(characters.encode_packed(text, "input").size() % characters.packed_width() == 0, "tokens are whole");
  } catch (const BadInput&) {
  }
  const auto pairs = data::Vocabulary::byte_pairs(data::BytePairs::train(text, 300));
  invariant(pairs.decode(pairs.encode(text, "input")) == text, "a text changes when its pairs are merged");
  invariant(data::Vocabulary::from_text(pairs.to_text()) == pairs, "pairs are read as they are written");
  const auto words = data::Vocabulary::words(data::Words::train(text, 1000));
  invariant(data::Vocabulary::from_text(words.to_text()) == words, "words are read as they are written");
  return 0;
}
