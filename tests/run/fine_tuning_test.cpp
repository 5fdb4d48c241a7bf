// Training that begins with somebody else's weights: what is loaded and what is not, weights that rest, rates of their
// own, and what of it a checkpoint must agree with.

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "run/job.h"
#include "run/weights.h"
#include "tests/support/says.h"
#include "tests/support/temp_dir.h"
#include "track/weights_hash.h"

namespace echelon {
namespace {

const char* tuned_pictures =
    "[data]\nkind = \"synthetic\"\nmake = \"images\"\nshape = [1, 28, 28]\nsamples = 60\nsamples_test = 20\n";

struct TunedRun {
  TunedRun(const test::TempDir& dir, const std::string& model, const std::string& optim = "lr = 0.05\n",
           const std::string& classes = "classes = 4\n", std::int64_t steps = 2)
      : alone(1), disk(make_real_disk()), clock(make_real_clock()) {
    const std::string path = dir.path("tuned.toml");
    write_file_atomically(
        *disk, path,
        fmt::format("[model]\nname = \"lenet5\"\n{}\n{}{}[optim]\nname = \"sgd\"\n{}[train]\nsteps = {}\nbatch = 20\n",
                    model, tuned_pictures, classes, optim, steps));
    prepared = prepare_run(*disk, path, {}, problems);
    if (prepared.recipe.start) initial = load_initial_weights(*disk, prepared, problems);
    if (!problems.empty()) return;
    job.emplace(make_job(prepared));
    job->initial = initial;
    training = std::make_unique<Training>(*job, *disk, *clock, alone.team, dir.path("checkpoints"), 2);
  }
  std::string complaint() const { return problems.text("tuned.toml"); }
  std::vector<float> weight(const std::string& name) const {
    const auto& e = training->engine().table().find(name);
    const auto part = training->engine().model().subspan(e.offset, e.size);
    return {part.begin(), part.end()};
  }
  void run() {
    const Training::StopFlag never{false};
    training->run(never);
  }

  LocalTeam alone;
  std::unique_ptr<Disk> disk;
  std::unique_ptr<Clock> clock;
  Problems problems;
  PreparedRun prepared;
  std::shared_ptr<const InitialWeights> initial;
  std::optional<TrainingJob> job;
  std::unique_ptr<Training> training;
};

bool has_note(const TunedRun& run, const std::string& words) {
  return std::ranges::any_of(run.prepared.recipe.notes,
                             [&](const std::string& n) { return n.find(words) != std::string::npos; });
}

TEST(FineTuning, FrozenWeightsRestAndGetNoBackwardWork) {
  const test::TempDir a, b;
  TunedRun whole(a, "", "lr = 0.05\n", "classes = 4\n", 1),
      frozen(b, "freeze = [\"conv*\"]", "lr = 0.05\n", "classes = 4\n", 1);
  const auto before = frozen.weight("conv1.weight");
  ASSERT_EQ(before, whole.weight("conv1.weight"));
  const auto backward = [](const TunedRun& run, const char* layer) {
    std::size_t count = 0;
    for (const Node& node : run.prepared.model->training(4)[0].graph.nodes())
      count += node.backward && node.layer.starts_with(layer);
    return count;
  };
  EXPECT_GT(backward(whole, "conv"), 0u);
  EXPECT_EQ(backward(frozen, "conv"), 0u);
  EXPECT_EQ(backward(frozen, "pool"), 0u) << "nothing before the first trained weight is differentiated";
  whole.run();
  frozen.run();
  EXPECT_EQ(frozen.weight("conv1.weight"), before);
  EXPECT_NE(whole.weight("conv1.weight"), before);
  EXPECT_EQ(frozen.weight("fc3.weight"), whole.weight("fc3.weight")) << "the first step of what is trained is the same";
}

TEST(FineTuning, RatesScaleTheStepOfTheWeightsThatTheirLongestPatternFits) {
  const test::TempDir a, b;
  TunedRun plain(a, "", "lr = 0.05\n", "classes = 4\n", 1),
      rated(b, "", "lr = 0.05\nrates = { \"*\" = 0.5, \"fc*\" = 0.25, \"fc3.bias\" = 2 }\n", "classes = 4\n", 1);
  const auto start = plain.weight("conv1.weight"), head = plain.weight("fc2.weight"), bias = plain.weight("fc3.bias");
  plain.run();
  rated.run();
  const auto expect_factor = [&](const char* name, const std::vector<float>& from, float factor) {
    const auto p = plain.weight(name), r = rated.weight(name);
    for (std::size_t i = 0; i < p.size(); ++i)
      EXPECT_NEAR(r[i] - from[i], factor * (p[i] - from[i]), 1e-7f + 1e-5f * std::abs(from[i])) << name << " " << i;
    EXPECT_NE(r, from);
  };
  expect_factor("conv1.weight", start, 0.5f);
  expect_factor("fc2.weight", head, 0.25f);
  expect_factor("fc3.bias", bias, 2.0f);
}

TEST(FineTuning, ARunBeginsWithTheBestWeightsOfAnotherAndANewHeadWithRandomNumbers) {
  const test::TempDir a, b, c;
  TunedRun source(a, "");
  source.run();
  write_file_atomically(*source.disk, a.path("recipe.toml"), "");
  const std::string init = fmt::format("init = \"{}\"", a.path());
  TunedRun same(b, init);
  ASSERT_EQ(same.complaint(), "");
  EXPECT_EQ(same.weight("conv1.weight"), source.weight("conv1.weight"));
  EXPECT_EQ(same.weight("fc3.bias"), source.weight("fc3.bias"));
  EXPECT_TRUE(has_note(same, "10 of 10 tensors"));
  TunedRun other(c, init, "lr = 0.05\n", "classes = 7\n");
  ASSERT_EQ(other.complaint(), "");
  EXPECT_EQ(other.weight("fc2.weight"), source.weight("fc2.weight"));
  EXPECT_TRUE(has_note(other, "8 of 10 tensors"));
  EXPECT_TRUE(has_note(other, "fc3.weight [7, 84] (the source has [4, 84])"));
}

TEST(FineTuning, OnlyWhatTheRecipeNamesIsLoadedAndItsNamesAreTheRecipes) {
  const test::TempDir a, b;
  const auto disk = make_real_disk();
  TunedRun like(a, "");
  std::vector<TensorView> views;
  auto weights = weight_views(like.training->engine().table(), like.training->engine().model());
  for (TensorView& v : weights) views.push_back({"module.net." + v.name, v.dtype, v.shape, v.bytes});
  const std::vector<float> ones(6 * 25, 1.0f);
  for (TensorView& v : views)
    if (v.name == "module.net.conv1.weight") v.bytes = std::as_bytes(std::span(ones));
  write_safetensors(*disk, a.path("other.safetensors"), views);
  TunedRun run(b, fmt::format("init = {{ from = \"{}\", skip = [\"fc3\"], rename = {{ \"net.*\" = \"*\" }} }}",
                              a.path("other.safetensors")));
  ASSERT_EQ(run.complaint(), "");
  EXPECT_EQ(run.weight("conv1.weight"), ones);
  EXPECT_TRUE(has_note(run, "8 of 10 tensors"));
  EXPECT_TRUE(has_note(run, "fc3.weight [4, 84] (as the recipe says)"));
  EXPECT_EQ(run.prepared.recipe.start->sha256.size(), 64u);
}

// A file as another program writes it: half precision, eight-byte counters.
std::string foreign_file() {
  std::string header =
      R"({"a":{"dtype":"F16","shape":[3],"data_offsets":[0,6]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[6,10]},)"
      R"("c":{"dtype":"F64","shape":[1],"data_offsets":[10,18]},"d":{"dtype":"I64","shape":[1],"data_offsets":[18,26]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size() & 255), file[1] = static_cast<char>(header.size() >> 8);
  file += header;
  const std::uint16_t halves[]{0x3c00, 0xc000, 0x0001}, brains[]{0x3f80, 0xc040};
  const double wide = 0.1;
  file.append(reinterpret_cast<const char*>(halves), 6).append(reinterpret_cast<const char*>(brains), 4);
  file.append(reinterpret_cast<const char*>(&wide), 8).append(8, '\0');
  return file;
}

TEST(FineTuning, ForeignElementTypesAreReadAsFloats) {
  const test::TempDir dir;
  const auto disk = make_real_disk();
  write_file_atomically(*disk, dir.path("f.safetensors"), foreign_file());
  SafetensorsFile file(*disk, dir.path("f.safetensors"));
  EXPECT_EQ(file.read_floats(*file.find("a")), (std::vector<float>{1.0f, -2.0f, 5.9604645e-8f}));
  EXPECT_EQ(file.read_floats(*file.find("b")), (std::vector<float>{1.0f, -3.0f}));
  EXPECT_EQ(file.read_floats(*file.find("c")), (std::vector<float>{0.1f}));
  EXPECT_FALSE(SafetensorsFile::is_float(*file.find("d")));
}

TEST(FineTuning, AFingerprintHasTheSourcesWeightsAndNotItsPlace) {
  const test::TempDir a, b, c, d, e;
  const auto disk = make_real_disk();
  TunedRun like(a, "");
  const auto views = weight_views(like.training->engine().table(), like.training->engine().model());
  for (const auto& path : {a.path("one.safetensors"), a.path("copy.safetensors")})
    write_safetensors(*disk, path, views);
  like.run();
  write_safetensors(*disk, a.path("two.safetensors"),
                    weight_views(like.training->engine().table(), like.training->engine().model()));
  const auto print = [&](const test::TempDir& dir, const std::string& file) {
    TunedRun run(dir, fmt::format("init = \"{}\"", a.path(file)));
    EXPECT_EQ(run.complaint(), "");
    return run.job->model_fingerprint;
  };
  const std::string one = print(b, "one.safetensors");
  EXPECT_EQ(print(c, "copy.safetensors"), one);
  EXPECT_NE(print(d, "two.safetensors"), one);
  TunedRun plain(e, "");
  EXPECT_NE(plain.job->model_fingerprint, one);
}

TEST(FineTuning, EveryProblemIsNamedAtOnce) {
  const test::TempDir dir;
  TunedRun run(dir, "freeze = [\"covn1*\", \"fc3\"]\ninit = \"nowhere.safetensors\"",
               "lr = 0.05\nrates = { \"fc9\" = 0 }\n");
  const std::string text = run.complaint();
  EXPECT_TRUE(test::says(text, "\"covn1*\", which fits no weight; did you mean 'conv1'?"));
  EXPECT_TRUE(test::says(text, "optim.rates.fc9"));
  EXPECT_TRUE(test::says(text, "model.freeze"));
  const test::TempDir other;
  TunedRun all(other, "freeze = [\"*\"]");
  EXPECT_TRUE(test::says(all.complaint(), "model.freeze leaves no weight to train"));
}

TEST(FineTuning, ASourceThatDoesNotFitIsRefused) {
  const test::TempDir a, b, c, d;
  const auto disk = make_real_disk();
  const std::vector<float> numbers(4, 0.5f);
  const std::vector<TensorView> views{{"q", DType::f32, Shape{4}, std::as_bytes(std::span(numbers))}};
  write_safetensors(*disk, a.path("q.safetensors"), views);
  const std::string from = a.path("q.safetensors");
  EXPECT_TRUE(
      test::says(TunedRun(b, fmt::format("init = \"{}\"", from)).complaint(), "nothing of it fits this network"));
  EXPECT_TRUE(test::says(
      TunedRun(c, fmt::format("init = {{ from = \"{}\", sha256 = \"12\", load = [\"cnov1\"] }}", from)).complaint(),
      "has other weights than this run began with"));
  EXPECT_TRUE(
      test::says(TunedRun(d, "init = \"gone\"").complaint(), "model.init cannot be used: gone: there is no run"));
}

}  // namespace
}  // namespace echelon
