#include "data/formats/text.h"

#include <map>
#include <set>

#include "data/formats/synthetic.h"
#include "data/loader.h"
#include "data/text/pieces.h"
#include "tests/data/support.h"

namespace echelon::data {
namespace {

using test::complaint_of;
using test::says;
using test::values;

SourcePtr text(std::string_view s) {
  const auto bytes = std::as_bytes(std::span(s));
  return memory_source("t.txt", {bytes.begin(), bytes.end()});
}

std::string counting(int n) {
  std::string s;
  for (int i = 0; i < n; ++i) s.push_back(static_cast<char>(i % 251));
  return s;
}

TEST(Vocabulary, CharactersAreNumberedInOrderAndComeBack) {
  const std::string s = "b\xC3\xA4 a\xE2\x82\xAC\xF0\x9F\x90\x8B\n";
  const auto v = Vocabulary::characters(s, "s");
  EXPECT_EQ(v.size(), 7u);
  EXPECT_EQ(v.encode("\n ab", "x"), (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(v.decode(v.encode(s, "s")), s);
  EXPECT_EQ(Vocabulary::from_text(v.to_text()), v);
  EXPECT_EQ(v.to_text(), "characters U+000A U+0020 U+0061 U+0062 U+00E4 U+20AC U+1F40B");
  EXPECT_TRUE(says(complaint_of([&] { v.encode("ab?", "prompt"); }), "prompt: at byte 2: the character '?' (U+003F)"));
  EXPECT_EQ(v.decode(std::vector<std::int32_t>{2, 99}), "a\xEF\xBF\xBD");
}

TEST(Vocabulary, BytesAreBytes) {
  const auto v = Vocabulary::bytes();
  EXPECT_EQ(v.size(), 256u);
  const std::string s = "\xff\0a";
  EXPECT_EQ(v.decode(v.encode(s, "s")), s);
  EXPECT_EQ(Vocabulary::from_text(v.to_text()), v);
}

TEST(Vocabulary, RefusesWhatIsNotUtf8) {
  for (const char* s : {"a\xff", "a\xC3", "a\xC0\x80", "a\xED\xA0\x80", "a\xF4\x90\x80\x80", "a\x80", "a\xE2\x82"})
    EXPECT_TRUE(says(complaint_of([&] { Vocabulary::characters(s, "f"); }), "f: at byte 1: expected UTF-8")) << s;
  for (const char* s : {"", "byte", "characters", "characters U+0041 U+0041", "characters U+0042 U+0041",
                        "characters U+110000", "characters 41", "characters U+a", "characters U+D800"})
    EXPECT_THROW(Vocabulary::from_text(s), BadInput) << s;
}

// The pairs as the definition has them: count every pair of every piece again after each merge.
std::vector<std::pair<std::uint32_t, std::uint32_t>> slow_pairs(std::string_view s, std::size_t tokens) {
  std::vector<std::vector<std::uint32_t>> pieces;
  for_each_piece(s, [&](std::string_view piece) {
    pieces.emplace_back();
    for (const char c : piece) pieces.back().push_back(static_cast<unsigned char>(c));
  });
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  while (256 + pairs.size() < tokens) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> counts;
    for (const auto& p : pieces)
      for (std::size_t i = 0; i + 1 < p.size(); ++i) ++counts[{p[i], p[i + 1]}];
    std::pair<std::uint32_t, std::uint32_t> best;
    int most = 1;
    for (const auto& [pair, count] : counts)
      if (count > most) most = count, best = pair;
    if (most < 2) break;
    for (auto& p : pieces) {
      std::vector<std::uint32_t> merged;
      for (std::size_t i = 0; i < p.size(); ++i) {
        const bool here = i + 1 < p.size() && p[i] == best.first && p[i + 1] == best.second;
        merged.push_back(here ? static_cast<std::uint32_t>(256 + pairs.size()) : p[i]);
        if (here) ++i;
      }
      p = merged;
    }
    pairs.push_back(best);
  }
  return pairs;
}

constexpr std::string_view rhyme =
    "the cat sat on the mat, the cat sat on the hat; and then the rat that sat there sat on the cat.\n\n  aaaaaa aaaa "
    "1999 "
    "1998 19\xC3\xA4\xC3\xA4\xC3\xA4\n";

TEST(Pieces, AreTheTextAndBeginWords) {
  std::vector<std::string_view> pieces;
  for_each_piece("It's  1999,\n ok", [&](std::string_view p) { pieces.push_back(p); });
  EXPECT_EQ(pieces, (std::vector<std::string_view>{"It", "'", "s", " ", " 1999", ",", "\n", " ok"}));
  const std::string longest(1000, 'x');
  std::size_t count = 0;
  for_each_piece(longest, [&](std::string_view p) {
    EXPECT_LE(p.size(), most_piece_bytes);
    ++count;
  });
  EXPECT_EQ(count, (longest.size() + most_piece_bytes - 1) / most_piece_bytes);
}

TEST(BytePairs, AreThoseOfTheDefinition) {
  std::string expected;
  for (const auto& [a, b] : slow_pairs(rhyme, 320)) expected += fmt::format("{} {}\n", a, b);
  EXPECT_EQ(BytePairs::train(rhyme, 320).to_text(), expected);
  EXPECT_LT(BytePairs::train(rhyme, 100000).size(), 400u);  // no pair is left that occurs twice
  EXPECT_EQ(BytePairs::train("", 300).size(), 256u);
}

TEST(BytePairs, EncodeAnyBytesAndMergeAsTheyWereMade) {
  const auto v = Vocabulary::byte_pairs(BytePairs::train(rhyme, 270));
  EXPECT_EQ(v.size(), 270u);
  for (const std::string& s : {std::string(rhyme), std::string("something else \xff\0 entirely", 26), std::string()})
    EXPECT_EQ(v.decode(v.encode(s, "s")), s);
  EXPECT_LT(v.encode(rhyme, "s").size(), rhyme.size() / 2);
  EXPECT_EQ(v.encode(" the", "s").size(), 1u);
  EXPECT_EQ(Vocabulary::from_text(v.to_text()), v);
}

TEST(BytePairs, RefuseWhatNobodyWrote) {
  for (const char* s : {"bpe\n1 2", "bpe\n1 256\n", "bpe\n1 2\n1 2\n", "bpe\n1  2\n", "bpe\n01 2\n", "bpe\n1 2 \n",
                        "bpe\n\n", "bpe\n-1 2\n", "words\na", "words\n\n", "words\na\na\n", "words\na b\n",
                        "words\n\\x41\n", "words\n\\x0\n", "words\n\\X0A\n", "words\n\\x0A\n", "words\na1\n"})
    EXPECT_THROW(Vocabulary::from_text(s), BadInput) << s;
  std::string doubled = "bpe\n97 97\n";  // a token of 2, 4, 8, ... bytes
  for (int i = 256; i < 300; ++i) doubled += fmt::format("{0} {0}\n", i);
  EXPECT_TRUE(says(complaint_of([&] { Vocabulary::from_text(doubled); }), "at most 64 bytes"));
}

TEST(Words, AreTheMostFrequentAndTheRestIsUnknown) {
  const auto v = Vocabulary::words(Words::train(rhyme, 4));
  EXPECT_EQ(v.size(), 4u);
  const std::vector<std::int32_t> tokens = v.encode(" the cat sat quietly", "s");
  EXPECT_EQ(tokens.size(), 4u);
  EXPECT_EQ(tokens[0], 1);
  EXPECT_EQ(tokens[3], 0);
  EXPECT_EQ(v.decode(std::span(tokens).first(3)), " the cat sat");
  EXPECT_EQ(v.decode(std::span(tokens).last(1)), "<unk>");
  const auto all = Vocabulary::words(Words::train(rhyme, 1000));
  EXPECT_EQ(all.decode(all.encode(rhyme, "s")), rhyme);
  EXPECT_EQ(Vocabulary::from_text(all.to_text()), all);
}

TEST(Text, PairsAndWordsAreMadeOfThePartThatTrains) {
  std::string s;
  for (int i = 0; i < 100; ++i) s += "seen ";
  for (int i = 0; i < 100; ++i) s += "never ";
  TextOptions o;
  o.length = 4;
  o.train_fraction = 0.4;
  o.tokens = 300;
  for (const auto level : {TextOptions::Level::bpe, TextOptions::Level::word}) {
    o.level = level;
    const auto train = read_text_dataset(text(s), "train", o), test = read_text_dataset(text(s), "test", o);
    EXPECT_EQ(*train->info().vocabulary, *test->info().vocabulary);
    EXPECT_EQ(train->info().vocabulary->to_text().find("never"), std::string::npos);
    EXPECT_EQ(train->info().classes, static_cast<std::int64_t>(train->info().vocabulary->size()));
    Sample sample(train->fields());
    train->get(1, {}, sample.ref());
    const auto said = train->info().vocabulary->decode(sample.field<std::int32_t>(0));
    EXPECT_NE(s.find(said), std::string::npos) << said;
  }
}

TEST(WholeCharacters, LeaveOutWhatIsNotCompleteYet) {
  EXPECT_EQ(whole_characters("abc"), 3u);
  EXPECT_EQ(whole_characters("ab\xC3"), 2u);
  EXPECT_EQ(whole_characters("ab\xC3\xA4"), 4u);
  EXPECT_EQ(whole_characters("\xF0\x9F\x90"), 0u);
  EXPECT_EQ(whole_characters("\xF0\x9F\x90\x8B"), 4u);
  EXPECT_EQ(whole_characters(""), 0u);
  EXPECT_EQ(whole_characters("\x80\x80\x80\x80"), 4u);  // no beginning of a character: not worth waiting for
}

TextOptions options(TextOptions::Windows windows, std::int64_t length) {
  TextOptions o;
  o.level = TextOptions::Level::byte;
  o.windows = windows;
  o.length = length;
  return o;
}
using Windows = TextOptions::Windows;

TEST(Text, TargetsAreTheNextTokensAndSplitsDoNotOverlap) {
  const auto source = text(counting(1000));
  const auto train = read_text_dataset(source, "train", options(Windows::tiled, 10));
  const auto rest = read_text_dataset(source, "test", options(Windows::tiled, 10));
  EXPECT_EQ(train->size(), 89u);  // 900 tokens: the last window would lack its last target
  EXPECT_EQ(rest->size(), 9u);
  for (std::uint64_t i = 0; i < train->size(); ++i) {
    const auto x = values<std::int32_t>(*train, i, 0), y = values<std::int32_t>(*train, i, 1);
    for (std::size_t t = 0; t < 10; ++t) {
      ASSERT_EQ(x[t], static_cast<std::int32_t>((i * 10 + t) % 251));
      ASSERT_EQ(y[t], static_cast<std::int32_t>((i * 10 + t + 1) % 251));
    }
  }
  EXPECT_EQ(values<std::int32_t>(*rest, 0, 0)[0], 900 % 251);
  EXPECT_NE(train->info().fingerprint, rest->info().fingerprint);
}

TEST(Text, RandomWindowsArePureAndReachEveryPlace) {
  const auto d = read_text_dataset(text(counting(60)), "train", options(Windows::random, 4));
  EXPECT_TRUE(d->info().random);
  std::set<std::int32_t> starts;
  for (std::uint32_t epoch = 0; epoch < 200; ++epoch)
    for (std::uint64_t i = 0; i < d->size(); ++i) {
      const auto x = values<std::int32_t>(*d, i, 0, {3, epoch});
      ASSERT_EQ(x, values<std::int32_t>(*d, i, 0, {3, epoch}));
      ASSERT_EQ(values<std::int32_t>(*d, i, 1, {3, epoch})[3], x[3] + 1);
      starts.insert(x[0]);
    }
  EXPECT_EQ(*starts.begin(), 0);
  EXPECT_EQ(*starts.rbegin(), 54 - 5) << "the last window ends with the last token as its target";
  EXPECT_EQ(starts.size(), 50u);
}

// Truncated backpropagation through time: row b of every batch goes on where row b of the batch before ended.
TEST(Text, StreamsGoOnFromBatchToBatch) {
  auto o = options(Windows::streams, 5);
  o.streams = 3;
  const auto d = read_text_dataset(text(counting(250)), "train", o);
  LoaderOptions lo;
  lo.batches = {{0, 3}};
  lo.shards = 3;
  Loader loader(d, lo);
  std::vector<std::int32_t> next(3, -1);
  std::set<std::int32_t> first;
  const std::uint64_t steps = loader.batches().steps_before(1);
  EXPECT_EQ(steps, 44u / 3);
  for (std::uint64_t step = 0; step < steps; ++step) {
    const Batch& batch = loader.at(step);
    for (std::uint64_t s = 0; s < 3; ++s) {
      const auto x = batch.field_as<std::int32_t>(s, 0), y = batch.field_as<std::int32_t>(s, 1);
      if (step == 0) first.insert(x[0]);
      ASSERT_TRUE(step == 0 || x[0] == next[s]);
      next[s] = y[4];
    }
  }
  EXPECT_EQ(first.size(), 3u);
  EXPECT_TRUE(says(complaint_of([&] { shuffled(d); }), "must stay in order"));
  lo.batches = {{0, 4}};
  EXPECT_TRUE(says(complaint_of([&] { Loader(d, lo); }), "3 streams"));
}

TEST(Text, CharactersAndTheirVocabularyAreShared) {
  TextOptions o;
  o.length = 4;
  const auto source = text(
      "\xC3\xA4"
      "bcdefghijklmnopqrstuvwxyz\xC3\xBC");
  const auto train = read_text_dataset(source, "train", o);
  EXPECT_EQ(train->info().classes, 27);
  EXPECT_EQ(train->info().vocabulary->decode(values<std::int32_t>(*train, 0, 0)),
            "\xC3\xA4"
            "bcd");
  EXPECT_TRUE(
      says(complaint_of([&] { read_text_dataset(source, "test", o); }), "the split 'test' has 3 tokens: too few"));
  o.vocabulary = std::make_shared<Vocabulary>(Vocabulary::characters("abc", "v"));
  EXPECT_TRUE(says(complaint_of([&] { read_text_dataset(source, "train", o); }), "is not among the 3"));
}

TEST(Synthetic, IsDeterministicBalancedAndTold) {
  SyntheticOptions o;
  o.samples = 50;
  o.classes = 5;
  const auto a = make_synthetic("train", o), b = make_synthetic("train", o), test = make_synthetic("test", o);
  EXPECT_EQ(values<float>(*a, 7, 0), values<float>(*b, 7, 0, {9, 9}));
  EXPECT_NE(values<float>(*a, 7, 0), values<float>(*test, 7, 0));
  EXPECT_EQ(test::label(*a, 7), 2);
  EXPECT_NE(a->info().fingerprint, test->info().fingerprint);
  o.seed = 2;
  EXPECT_NE(values<float>(*a, 7, 0), values<float>(*make_synthetic("train", o), 7, 0));
}

// Samples of a class are nearer to each other than to those of other classes: there is something to learn.
TEST(Synthetic, ClassesCanBeToldApart) {
  for (const auto kind : {SyntheticOptions::Kind::blobs, SyntheticOptions::Kind::images}) {
    SyntheticOptions o;
    o.kind = kind;
    o.shape = kind == SyntheticOptions::Kind::blobs ? Shape{16} : Shape{1, 4, 4};
    o.samples = 100;
    const auto d = make_synthetic("train", o), t = make_synthetic("test", o);
    int right = 0;
    for (std::uint64_t i = 0; i < 100; ++i) {
      const auto x = values<float>(*t, i, 0);
      double best = 1e9;
      int nearest = -1;
      for (std::uint64_t j = 0; j < 100; ++j) {
        const auto y = values<float>(*d, j, 0);
        double distance = 0;
        for (std::size_t k = 0; k < x.size(); ++k) distance += (x[k] - y[k]) * (x[k] - y[k]);
        if (distance < best) best = distance, nearest = test::label(*d, j);
      }
      right += nearest == test::label(*t, i);
    }
    EXPECT_GT(right, 90);
  }
}

TEST(Synthetic, TokensFollowEachOther) {
  SyntheticOptions o;
  o.kind = SyntheticOptions::Kind::tokens;
  o.shape = Shape{20};
  o.classes = 30;
  o.noise = 0;
  const auto d = make_synthetic("train", o);
  const auto x = values<std::int32_t>(*d, 3, 0), y = values<std::int32_t>(*d, 3, 1);
  for (std::size_t t = 0; t + 1 < 20; ++t) EXPECT_EQ(y[t], x[t + 1]);
}

TEST(Synthetic, RefusesWhatCannotBe) {
  SyntheticOptions o;
  o.shape = Shape{1 << 20, 1 << 20, 1 << 20};
  EXPECT_THROW(make_synthetic("train", o), BadInput);
  o.shape = Shape{4};
  o.kind = SyntheticOptions::Kind::images;
  EXPECT_THROW(make_synthetic("train", o), BadInput);
}

}  // namespace
}  // namespace echelon::data
