// A text model that begins with the weights of another text: rows of tokens go to the same tokens.

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "data/vocabulary.h"
#include "run/job.h"
#include "run/training/initial_weights.h"
#include "tests/support/says.h"
#include "tests/support/temp_dir.h"
#include "track/checkpoint.h"
#include "track/run.h"

namespace echelon {
namespace {

struct TextRun {
  TextRun(const std::string& folder, const std::string& text, const std::string& model) : alone(1) {
    disk->make_directories(folder);
    write_file_atomically(*disk, folder + "/text.txt", text);
    write_file_atomically(*disk, folder + "/recipe.toml",
                          fmt::format("[model]\n{}\n[data]\nkind = \"text\"\npath = \"{}/text.txt\"\nlength = 4\n"
                                      "[optim]\nname = \"sgd\"\nlr = 0.05\n[train]\nsteps = 2\nbatch = 8\n",
                                      model, folder));
    prepared = prepare_run(*disk, folder + "/recipe.toml", {}, problems);
    if (prepared.recipe.start) initial = load_initial_weights(*disk, prepared, problems);
    if (!problems.empty()) return;
    write_file_atomically(*disk, folder + "/tokens.txt", prepared.plain.vocabulary->to_text());
    job.emplace(make_job(prepared));
    job->initial = initial;
    training = std::make_unique<Training>(*job, *disk, *clock, alone.team, folder + "/checkpoints", 2);
  }
  // The row of the weight that stands for a token.
  std::vector<float> row(const std::string& weight, const std::string& token) const {
    const auto& e = training->engine().table().find(weight);
    const auto at = static_cast<std::size_t>(prepared.plain.vocabulary->encode(token, "token").at(0));
    const std::size_t width = e.size / prepared.plain.vocabulary->size();
    const auto part = training->engine().model().subspan(e.offset + at * width, width);
    return {part.begin(), part.end()};
  }
  std::string notes() const { return fmt::format("{}", fmt::join(prepared.recipe.notes, "\n")); }
  void run() {
    const Training::StopFlag never{false};
    training->run(never);
  }

  LocalTeam alone;
  std::unique_ptr<Disk> disk = make_real_disk();
  std::unique_ptr<Clock> clock = make_real_clock();
  Problems problems;
  PreparedRun prepared;
  std::shared_ptr<const InitialWeights> initial;
  std::optional<TrainingJob> job;
  std::unique_ptr<Training> training;
};

std::string repeated(const std::string& text) {
  std::string all;
  for (int i = 0; i < 60; ++i) all += text;
  return all;
}

const std::string small_gpt = "name = \"gpt\"\nlayers = 1\nheads = 1\nwidth = 6\ntied = false\n";

TEST(MatchingTokens, RowsGoToTheSameCharacters) {
  const test::TempDir dir;
  TextRun source(dir.path("a"), repeated("abcd abd "), small_gpt);
  source.run();
  // As many characters; 'x' in the place of 'c', and all behind it one place further.
  TextRun same(dir.path("b"), repeated("aabd xbd "), small_gpt + fmt::format("init = \"{}\"", dir.path("a")));
  ASSERT_EQ(same.problems.text(""), "");
  ASSERT_EQ(same.prepared.plain.vocabulary->size(), source.prepared.plain.vocabulary->size());
  for (const char* weight : {"tok.weight", "head.weight"})
    for (const char* token : {" ", "a", "b", "d"})
      EXPECT_EQ(same.row(weight, token), source.row(weight, token)) << weight << " " << token;
  EXPECT_NE(same.row("tok.weight", "x"), source.row("tok.weight", "c"));
  EXPECT_TRUE(test::says(same.notes(), "4 of 5 tokens are in it"));
  TextRun larger(dir.path("c"), repeated("abd efgh "), small_gpt + fmt::format("init = \"{}\"", dir.path("a")));
  ASSERT_EQ(larger.problems.text(""), "");
  EXPECT_EQ(larger.row("tok.weight", "d"), source.row("tok.weight", "d")) << "of another number of tokens";
}

TEST(MatchingTokens, ANetworkThatSaysHowManyTokensThereAreGetsAWarning) {
  const test::TempDir dir;
  const std::string layers =
      "name = \"layers\"\nlayers = [{ type = \"embedding\", rows = 5, width = 3 }, { type = \"linear\", out = 5 }]\n";
  TextRun source(dir.path("a"), repeated("abcd abd "), layers);
  source.run();
  TextRun other(dir.path("b"), repeated("aabd xbd "), layers + fmt::format("init = \"{}\"", dir.path("a")));
  ASSERT_EQ(other.problems.text(""), "");
  EXPECT_TRUE(test::says(other.notes(), "rows of embeddings and scores stand for other tokens there (4 of 5 tokens"));
}

}  // namespace
}  // namespace echelon
