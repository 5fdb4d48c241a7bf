// A sample's answer has the same bits in every batch in which networks are asked, at every place.
#include "models/answer_batch.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "recipe/toml.h"
#include "tests/support/graph_runner.h"
#include "tests/support/zoo_networks.h"

namespace echelon {
namespace {

TEST(AnswerBatch, IsTheNextMultipleOfEight) {
  EXPECT_EQ(models::answer_batch(1), 8);
  EXPECT_EQ(models::answer_batch(8), 8);
  EXPECT_EQ(models::answer_batch(9), 16);
}

// Fills the batch with samples `first`, `first` + 1, ...
void fill_samples(test::GraphRunner& run, const Graph& graph, std::int64_t size, std::int64_t first) {
  for (const Graph::Input& input : graph.inputs()) {
    const Type& type = graph.type(input.value);
    const std::int64_t each = type.elements() / size;
    for (std::int64_t s = 0; s < size; ++s) {
      const Stream stream({.seed = static_cast<std::uint64_t>(first + s), .layer = 3});
      for (std::int64_t i = 0; i < each; ++i) {
        const float x = stream.uniform(static_cast<std::uint64_t>(i));
        const auto at = static_cast<std::size_t>(s * each + i);
        if (type.dtype == DType::i32)
          run.input<std::int32_t>(input.name)[at] = static_cast<std::int32_t>(3 * x);
        else
          run.input<float>(input.name)[at] = 2 * x - 1;
      }
    }
  }
}

TEST(AnswerBatch, AnswersOfAllNetworksHaveTheSameBitsInAllOfThem) {
  for (const test::SmallNetwork& n : test::small_networks()) {
    if (n.batch != 0) continue;  // experts have room for a share of the batch: what they say depends on the batch
    SCOPED_TRACE(n.model + " " + n.options);
    const auto model = models::make_model(n.model, n.inputs, parse_toml(n.options, "test"));
    const Graph eight = model->prediction(8), more = model->prediction(24);
    if (eight.inputs().empty() || !eight.carries().empty()) continue;  // is not asked in this way
    test::ModelMemory memory({&eight});
    test::GraphRunner a(eight, memory), b(more, memory);
    fill_samples(a, eight, 8, 5);
    fill_samples(b, more, 24, 0);
    a.run(), b.run();
    for (const auto& [name, value] : eight.outputs()) {
      const std::vector<float> want = a.output(name), all = b.output(name);
      const std::size_t each = want.size() / 8;
      EXPECT_EQ(std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(5 * each),
                                   all.begin() + static_cast<std::ptrdiff_t>(13 * each)),
                want)
          << name;
    }
  }
}

}  // namespace
}  // namespace echelon
