// Metrics against the numbers of scikit-learn 1.2.1 on the same predictions, however they are cut into slices.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "models/zoo.h"
#include "parallel/metrics/auc.h"
#include "parallel/metrics/tally.h"

namespace echelon {
namespace {

constexpr std::size_t rows = 23, classes = 4;

std::vector<float> some_logits() {
  std::vector<float> x;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < classes; ++c)
      x.push_back(static_cast<float>(static_cast<int>((r * 7 + c * 13 + r * r) % 17) - 8) / 3.0f);
  return x;
}

std::vector<std::int32_t> some_classes() {  // the last of the four never occurs
  std::vector<std::int32_t> y;
  for (std::size_t r = 0; r < rows; ++r) y.push_back(static_cast<std::int32_t>((r * r + r / 3) % 3));
  return y;
}

std::vector<Metric> named(const std::vector<std::string>& names) {
  std::vector<Metric> all;
  for (const std::string& n : names) all.push_back(metric_named(n).value());
  return all;
}

models::InputSpec spec_of(Type target, std::int64_t of_classes, models::LossSpec loss = {}) {
  models::InputSpec spec;
  spec.inputs = {{"x", f32({3})}};
  spec.target = {"y", std::move(target)};
  spec.classes = of_classes;
  spec.loss = std::move(loss);
  return spec;
}

struct ToldByShards {
  double loss = 0, accuracy = -1;
};

// The metrics of predictions that arrive in slices of `slice` rows.
std::map<std::string, double> metrics_of(const models::InputSpec& inputs, const std::vector<std::string>& names,
                                         std::span<const float> predictions, std::span<const std::byte> targets,
                                         std::size_t slice, ToldByShards told = {}, data::DatasetInfo info = {}) {
  info.classes = inputs.classes;
  const auto model = models::make_model("mlp", inputs);
  const MetricTally tally(named(names), *model, info);
  const std::size_t width = predictions.size() / rows, bytes = targets.size() / rows;
  std::vector<double> sums, scores;
  std::vector<std::int64_t> counts(tally.counts());
  for (std::size_t first = 0; first < rows; first += slice) {
    const std::size_t count = std::min(slice, rows - first);
    std::vector<double> of_slice(tally.sums()), kept(tally.scores() * count);
    tally.add(predictions.subspan(first * width, count * width), targets.subspan(first * bytes, count * bytes),
              of_slice, counts, kept);
    sums.insert(sums.end(), of_slice.begin(), of_slice.end());
    scores.insert(scores.begin(), kept.begin(), kept.end());  // in another order than they came
  }
  const auto values = tally.values(
      sums, counts, scores, {.loss = told.loss, .accuracy = told.accuracy, .terms = static_cast<std::int64_t>(rows)});
  return {values.begin(), values.end()};
}

TEST(Metrics, OfClassesAreScikitLearns) {
  const auto x = some_logits();
  const auto y = some_classes();
  models::LossSpec weighted{.name = "cross_entropy"};
  weighted.class_weights = {1, 2, 3, 4};  // then the loss is not the log loss
  for (const std::size_t slice : {1, 4, 23}) {
    auto m = metrics_of(spec_of(i32({}), 4, weighted),
                        {"top_2", "precision", "recall", "f1", "f1_micro", "f1_per_class", "auc", "log_loss",
                         "perplexity", "accuracy", "top_4"},
                        x, std::as_bytes(std::span(y)), slice, {.loss = 99, .accuracy = 7 / 23.0});
    EXPECT_DOUBLE_EQ(m["accuracy"], 0.30434782608695654);
    EXPECT_DOUBLE_EQ(m["top_2"], 0.5217391304347826);
    EXPECT_DOUBLE_EQ(m["top_4"], 1);
    EXPECT_DOUBLE_EQ(m["precision"], 0.3958333333333333);
    EXPECT_DOUBLE_EQ(m["recall"], 0.22619047619047616);
    EXPECT_DOUBLE_EQ(m["f1"], 0.2863636363636364);
    EXPECT_DOUBLE_EQ(m["f1_micro"], 0.30434782608695654);
    EXPECT_DOUBLE_EQ(m["f1[1]"], 0.4);
    EXPECT_DOUBLE_EQ(m["f1[3]"], 0);
    EXPECT_DOUBLE_EQ(m["auc"], 0.548611111111111);
    EXPECT_NEAR(m["log_loss"], 2.4954955703740462, 1e-12);
    EXPECT_NEAR(m["perplexity"], std::exp(2.4954955703740462), 1e-11);
  }
}

TEST(Metrics, TheLogLossIsTheLossWhereThatIsPlain) {
  const auto y = some_classes();
  auto m = metrics_of(spec_of(i32({}), 4), {"log_loss", "perplexity"}, some_logits(), std::as_bytes(std::span(y)), 23,
                      {.loss = 0.5});
  EXPECT_EQ(m["log_loss"], 0.5);
  EXPECT_EQ(m["perplexity"], std::exp(0.5));
}

TEST(Metrics, AUCOfTwoClasses) {
  std::vector<float> x;
  std::vector<std::int32_t> y = some_classes();
  for (std::size_t i = 0; i < some_logits().size(); ++i)
    if (i % classes < 2) x.push_back(some_logits()[i]);
  for (std::int32_t& v : y) v = v == 1;
  EXPECT_DOUBLE_EQ(metrics_of(spec_of(i32({}), 2), {"auc"}, x, std::as_bytes(std::span(y)), 5)["auc"],
                   0.5515873015873016);
}

TEST(Metrics, OfLabelsAreScikitLearns) {
  std::vector<float> y;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < classes; ++c) y.push_back((r * (c + 2) + r / 4) % 3 == 0);
  models::LossSpec binary{.name = "binary"};
  for (const std::size_t slice : {2, 23}) {
    auto m = metrics_of(spec_of(f32({4}), 0, binary), {"accuracy", "f1", "f1_micro", "auc"}, some_logits(),
                        std::as_bytes(std::span(y)), slice);
    EXPECT_DOUBLE_EQ(m["accuracy"], 0.532608695652174);
    EXPECT_DOUBLE_EQ(m["f1"], 0.4699813258636788);
    EXPECT_DOUBLE_EQ(m["f1_micro"], 0.46913580246913583);
    EXPECT_DOUBLE_EQ(m["auc"], 0.49469696969696964);
  }
}

std::pair<std::vector<float>, std::vector<float>> some_numbers() {  // predictions and targets, two each
  std::vector<float> said, is;
  for (std::size_t r = 0; r < rows; ++r) {
    is.push_back(static_cast<float>(r * 11 % 19) - 3);
    is.push_back(static_cast<float>(r * r % 23) * 2);
    said.push_back(is[2 * r] + (static_cast<float>(r % 5) - 2) * 0.5f);
    said.push_back(is[2 * r + 1] + static_cast<float>(r % 7) - 3);
  }
  return {said, is};
}

TEST(Metrics, OfNumbersAreScikitLearns) {
  const auto [said, is] = some_numbers();
  for (const std::size_t slice : {1, 6, 23}) {
    auto m = metrics_of(spec_of(f32({2}), 0), {"mae", "mae_per_target", "rmse_per_target", "r2_per_target", "r2"}, said,
                        std::as_bytes(std::span(is)), slice);
    EXPECT_NEAR(m["mae[0]"], 0.5869565, 1e-7);
    EXPECT_NEAR(m["mae[1]"], 1.7826087, 1e-7);
    EXPECT_NEAR(m["mae"], (0.5869565 + 1.7826087) / 2, 1e-7);
    EXPECT_NEAR(m["rmse[0]"], 0.6993786, 1e-7);
    EXPECT_NEAR(m["rmse[1]"], 2.053629, 1e-6);
    EXPECT_NEAR(m["r2[0]"], 0.98422641, 1e-8);
    EXPECT_NEAR(m["r2[1]"], 0.96705163, 1e-8);
  }
}

TEST(Metrics, OfStandardisedTargetsAreInTheirOwnUnits) {
  const auto [said, is] = some_numbers();
  data::DatasetInfo info;
  info.targets = {{"price", 1000, 10}, {"size", 5, 0.5}};
  auto m = metrics_of(spec_of(f32({2}), 0), {"mae_per_target", "rmse_per_target", "r2"}, said,
                      std::as_bytes(std::span(is)), 7, {}, info);
  EXPECT_NEAR(m["mae[price]"], 5.869565, 1e-6);
  EXPECT_NEAR(m["mae[size]"], 0.5 * 1.7826087, 1e-7);
  EXPECT_NEAR(m["rmse[price]"], 6.993786, 1e-6);
  EXPECT_NEAR(m["r2"], (0.98422641 + 0.96705163) / 2, 1e-7);
}

TEST(Metrics, OfQuantilesAreThoseOfTheMiddleOne) {
  const auto [said, is] = some_numbers();
  std::vector<float> three;
  for (const float s : said) three.insert(three.end(), {s - 100, s, s + 100});
  models::LossSpec loss{.name = "quantile"};
  loss.quantiles = {0.1f, 0.45f, 0.9f};
  auto m = metrics_of(spec_of(f32({2}), 0, loss), {"mae"}, three, std::as_bytes(std::span(is)), 7);
  EXPECT_NEAR(m["mae"], (0.5869565 + 1.7826087) / 2, 1e-6);
}

TEST(Metrics, AreaIsTheShareOfPairsInTheRightOrder) {
  std::mt19937 engine(5);
  for (int round = 0; round < 20; ++round) {
    std::vector<ScoredSample> samples;
    for (int i = 0; i < 30; ++i) samples.push_back({static_cast<double>(engine() % 8), engine() % 3 == 0});
    double won = 0, pairs = 0;
    for (const auto& p : samples)
      for (const auto& n : samples)
        if (p.positive && !n.positive) pairs += 1, won += p.score > n.score ? 1 : p.score == n.score ? 0.5 : 0;
    EXPECT_DOUBLE_EQ(area_under_roc(samples), won / pairs);
  }
  EXPECT_TRUE(std::isnan(area_under_roc({{1, true}, {2, true}})));
  EXPECT_TRUE(std::isnan(area_under_roc({{std::nan(""), true}, {2, false}})));
}

TEST(Metrics, NamesSayWhatTheyAreAndWhichWayIsBetter) {
  EXPECT_TRUE(metric_named("f1")->higher_is_better());
  EXPECT_FALSE(metric_named("rmse")->higher_is_better());
  EXPECT_FALSE(metric_named("loss")->higher_is_better());
  EXPECT_EQ(metric_named("top_5")->k, 5);
  EXPECT_EQ(metric_named("recall_micro")->over, Metric::Over::micro);
  for (const char* wrong : {"", "f2", "top_", "top_0", "top_x", "f1_per_target", "mae_micro", "accuracy_micro"})
    EXPECT_FALSE(metric_named(wrong)) << wrong;
  using models::Task;
  for (const Task task : {Task::classify, Task::multi_label, Task::regress, Task::language, Task::reconstruct})
    for (const std::string& name : metric_names(task)) {
      ASSERT_TRUE(metric_named(name)) << name;
      EXPECT_TRUE(has_meaning(*metric_named(name), task)) << name;
    }
  EXPECT_FALSE(has_meaning(*metric_named("f1"), Task::regress));
}

}  // namespace
}  // namespace echelon
