// `echelon data tokens`: trains byte pairs or words on a text and saves them, so that several runs, or a run on another
// text, have the same tokens (data.tokens = "FILE" in a recipe).

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/runs/run_table.h"
#include "cli/verbs.h"
#include "data/formats/text.h"
#include "world/os/disk.h"

namespace echelon::cli {

namespace {

struct TokensSettings {
  std::string text, level = "bpe", target;
  std::int64_t tokens = 4096;
  bool json = false;
};

void make_tokens(const TokensSettings& s) {
  const auto disk = make_real_disk();
  if (disk->exists(s.target)) bad_input("{} is there already: remove it, or give another name with --to", s.target);
  const auto source = data::open_source(*disk, s.text);
  const std::byte* bytes = source->at(0, source->size());
  if (!bytes) bad_input("{}: {} MiB are too much to be cut into tokens", s.text, source->size() >> 20);
  const std::string_view text(reinterpret_cast<const char*>(bytes), source->size());
  if (text.empty()) bad_input("{}: the file is empty: there is nothing to learn tokens from", s.text);
  data::TextOptions options;
  using Level = data::TextOptions::Level;
  options.level = s.level == "word" ? Level::word : s.level == "character" ? Level::character : Level::bpe;
  options.tokens = s.tokens;
  options.train_fraction = 1;
  const data::Vocabulary vocabulary = data::make_vocabulary(text, s.text, options);
  const std::size_t count = vocabulary.encode_packed(text, s.text).size() / vocabulary.packed_width();
  write_named_file(*disk, s.target, vocabulary.to_text());
  if (s.json)
    fmt::print("{}\n", nlohmann::ordered_json{{"text", s.text},
                                              {"level", vocabulary.level()},
                                              {"vocabulary", vocabulary.size()},
                                              {"bytes", text.size()},
                                              {"tokens", count},
                                              {"path", s.target}}
                           .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    fmt::print("wrote {} tokens to {}: the text's {} bytes are {} of them, {:.2f} bytes each\n", vocabulary.size(),
               s.target, text.size(), count,
               static_cast<double>(text.size()) / static_cast<double>(std::max<std::size_t>(1, count)));
}

}  // namespace

void add_data_tokens(Verb data) {
  const Verb verb = data.add_subcommand("tokens", "Make the tokens of a text, and save them for recipes to read");
  auto s = std::make_shared<TokensSettings>();
  verb.add_option("text", s->text, "A text file (also .gz)").required();
  verb.add_option("--level", s->level, "bpe (byte pairs), word or character")
      .show_default()
      .one_of({"bpe", "word", "character"});
  verb.add_option("--vocabulary", s->tokens, "How many tokens at most").show_default().range(256, 1 << 20);
  verb.add_option("--to", s->target, "A file that does not exist yet").required();
  verb.add_flag("--json", s->json, "Print JSON");
  verb.footer(
      "Examples:\n  echelon data tokens book.txt --vocabulary 2000 --to book.bpe\n"
      "  echelon train recipe.toml --set data.level=bpe --set data.tokens=book.bpe");
  verb.action([s] { make_tokens(*s); });
}

}  // namespace echelon::cli
