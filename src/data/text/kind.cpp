#include "data/text/kind.h"

#include "base/error.h"
#include "data/encoding.h"
#include "data/formats/text.h"
#include "data/vocabulary.h"

namespace echelon::data {

namespace {

// A text is cut into stretches, not sample by sample: windows overlap.
void read_text_parts(OptionReader& table, TextOptions& o) {
  const auto share = [&](const char* key) {
    const auto it = table.options().items.find(key);
    if (it == table.options().items.end() || !std::holds_alternative<std::string>(it->second.value))
      return table.number(key, 0, 0, 0.9);
    table.problem(key, "is a path, but a text is cut: write the share of it that is kept back, such as 0.1");
    return 0.0;
  };
  o.validation_fraction = share("validation");
  const double test = share("test");
  if (test > 0 && table.has("train_fraction"))
    table.problem("test", "and data.train_fraction are both given and mean the same; keep data.test");
  if (test > 0) o.train_fraction = 1 - test;
  for (const char* key : {"folds", "stratify", "split", "holdout"})
    if (table.has(key)) table.problem(key, "is not for a text: its first part trains, and its last one tests");
}

}  // namespace

OpenSplit read_text_kind(OptionReader& table, const DataPath& where) {
  TextOptions o;
  using Level = TextOptions::Level;
  using Windows = TextOptions::Windows;
  o.level =
      pick<Level>(table, "level",
                  {{"character", Level::character}, {"byte", Level::byte}, {"bpe", Level::bpe}, {"word", Level::word}});
  const std::string level = table.text("level", "character");
  const bool counted = o.level == Level::bpe || o.level == Level::word;
  if (counted) o.tokens = table.integer("vocabulary", 4096, o.level == Level::bpe ? 256 : 2, 1 << 20);
  const std::string tokens = table.text("tokens", "");
  if (!tokens.empty() && table.has("vocabulary"))
    table.problem("vocabulary", "stands beside tokens, which says it already: keep one of them");
  const auto encoding = pick<Encoding>(
      table, "encoding", {{"utf-8", Encoding::utf8}, {"latin-1", Encoding::latin1}, {"utf-16", Encoding::utf16}});
  o.length = table.integer("length", 64, 1, 1 << 20);
  o.windows = pick<Windows>(table, "windows",
                            {{"random", Windows::random}, {"tiled", Windows::tiled}, {"streams", Windows::streams}});
  o.streams = table.integer("streams", 1, 1, 1 << 20);
  o.samples = table.integer("samples", 0, 0, most_samples);
  o.train_fraction = table.number("train_fraction", 0.9, 0.01, 1);
  read_text_parts(table, o);
  if (table.has("streams") && o.windows != Windows::streams) table.problem("streams", "needs windows = \"streams\"");
  // What one split was read with serves the others: the same text has the same tokens.
  const auto made = std::make_shared<std::shared_ptr<const Vocabulary>>();
  return [=](Disk& disk, const std::string& split) -> DatasetPtr {
    TextOptions options = o;
    options.vocabulary = *made;
    // A test is the same every time: all of the text once.
    if (split != "train" && o.windows == Windows::random) options.windows = Windows::tiled;
    if (split != "train" && o.train_fraction >= 1) bad_input("the whole text trains: nothing is left for '{}'", split);
    const std::string path = where(disk);
    const std::string file = disk.is_directory(path) ? path + "/text.txt" : path;
    if (!tokens.empty() && !options.vocabulary) {
      try {
        options.vocabulary = std::make_shared<Vocabulary>(Vocabulary::from_text(read_text(disk, tokens, 64 << 20)));
      } catch (const BadInput& problem) {
        bad_input("{}: {}", tokens, problem.what());
      }
      if (options.vocabulary->level() != level)
        bad_input("{}: these are tokens of level = \"{}\": say that level", tokens, options.vocabulary->level());
    }
    SourcePtr source = open_source(disk, file);
    if (encoding != Encoding::utf8) {
      if (!source->at(0, source->size()))
        bad_input("{}: {} MiB are too much to be turned into UTF-8 here: iconv -t UTF-8", file, source->size() >> 20);
      source = as_utf8(source, encoding);
    }
    auto dataset = read_text_dataset(source, split, options);
    *made = dataset->info().vocabulary;
    return dataset;
  };
}

}  // namespace echelon::data
