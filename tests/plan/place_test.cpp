// A training graph cut into stages computes the same bits as the whole one.

#include "plan/place.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "data/loader.h"
#include "graph/communicator.h"
#include "graph/program.h"
#include "nn/initialise.h"
#include "plan/cut_stage.h"
#include "tests/parallel/small_networks.h"

namespace echelon {
namespace {

using namespace test;

// Messages as queues: stages run one after the other.
class Queues final : public Communicator {
 public:
  void send(int message, const StepContext&, std::span<const std::byte> bytes) override {
    queues_[message].emplace_back(bytes.begin(), bytes.end());
  }
  void receive(int message, const StepContext&, std::span<std::byte> into) override {
    ASSERT_FALSE(queues_[message].empty()) << "message " << message << " was not sent before";
    std::ranges::copy(queues_[message].front(), into.begin());
    queues_[message].pop_front();
  }
  bool empty() const {
    return std::ranges::all_of(queues_, [](const auto& q) { return q.second.empty(); });
  }

 private:
  std::map<int, std::deque<std::vector<std::byte>>> queues_;
};

struct CutRun {
  std::map<std::string, std::vector<float>> contributions;
  float loss = 0;
};

struct Bound {  // a graph with memory of its own
  Bound(Graph graph, std::span<const std::size_t> parts) : plan(lay_out(std::move(graph), true, parts)) {
    table.include(plan.graph);
    parameters = Buffer(table.floats() * sizeof(float));
    contributions = Buffer(table.floats() * sizeof(float));
    nn::initialise(table, 3, parameters.as<float>());
    arena = Buffer(plan.memory.arena_bytes);
    kept = Buffer(plan.memory.kept_bytes);
    executor.emplace(plan, table, parameters.as<float>(), contributions.as<float>(), arena.as<std::byte>(),
                     kept.as<std::byte>());
  }
  void load(data::Loader& loader) {
    const data::Batch& batch = loader.at(0);
    for (std::size_t f = 0; f < loader.dataset().fields().size(); ++f)
      if (const auto it = executor->inputs().find(loader.dataset().fields()[f].name); it != executor->inputs().end())
        std::memcpy(it->second.data(), batch.field(0, f).data(), it->second.size());
  }
  void collect(CutRun& run) {
    for (std::size_t i = 0; i < plan.graph.parameters().size(); ++i) {
      if (!plan.graph.contributions()[i]) continue;
      const auto& e = table.find(plan.graph.parameters()[i].name);
      const auto numbers = contributions.as<float>().subspan(e.offset, e.size);
      EXPECT_TRUE(
          run.contributions.emplace(e.parameter.name, std::vector<float>(numbers.begin(), numbers.end())).second)
          << e.parameter.name << " has two owners";
    }
    if (executor->has_output("loss")) run.loss = *reinterpret_cast<const float*>(executor->output("loss").data());
  }
  Plan plan;
  ParameterTable table;
  Buffer parameters, contributions, arena, kept;
  std::optional<Executor> executor;
};

CutRun run_whole(const Graph& graph, data::Loader& loader) {
  Bound whole(graph, {});
  whole.load(loader);
  whole.executor->run({.seed = 5, .step = 1});
  CutRun run;
  whole.collect(run);
  return run;
}

CutRun run_cut(const Graph& graph, data::Loader& loader, int stages, bool splits_weights) {
  const PlacedGraph placed = place_nodes(graph, cut_into_stages(layer_work(graph), stages));
  Queues queues;
  std::vector<std::unique_ptr<Bound>> bound;
  std::vector<std::array<std::size_t, 4>> begin;
  for (int s = 0; s < stages; ++s) {
    StageGraph cut = cut_stage(graph, placed, s, 0, splits_weights);
    begin.push_back(cut.begin);
    bound.push_back(std::make_unique<Bound>(std::move(cut.graph), std::span(cut.begin).subspan(1, 2)));
  }
  const StepContext context{.seed = 5, .step = 1, .communicator = &queues};
  for (const std::size_t pass : {0, 1, 2})
    for (int i = 0; i < stages; ++i) {
      const auto s = static_cast<std::size_t>(pass == 0 ? i : stages - 1 - i);
      // Between passes, other micro-batches use the arena.
      std::ranges::fill(bound[s]->arena.as<float>(), pass == 0 ? 0.0f : 1e30f);
      if (pass == 0) bound[s]->load(loader);
      for (std::size_t n = begin[s][pass]; n < begin[s][pass + 1]; ++n) bound[s]->executor->run_node(context, n);
    }
  EXPECT_TRUE(queues.empty());
  CutRun run;
  for (auto& b : bound) b->collect(run);
  return run;
}

TEST(Place, StagesComputeTheBitsOfTheWholeGraph) {
  constexpr std::uint64_t samples = 8;
  std::vector<Case> networks = cases();
  networks.push_back({"gpt",
                      table({{"width", integer(16)},
                             {"heads", integer(2)},
                             {"layers", integer(2)},
                             {"tied", Option{true}},
                             {"dropout", number(0.1)}}),
                      networks[5].data});
  for (const Case& network : networks) {
    if (network.name == "gan") continue;  // two phases
    const auto data = data::make_synthetic("train", network.data);
    const auto model = models::make_model(network.name, inputs_of(*data), network.options);
    const Graph graph = optimise(std::move(model->training(samples).front().graph));
    data::Loader loader(data, {.batches = {{0, samples}}, .prefetch = 0});
    const CutRun whole = run_whole(graph, loader);
    const int layers = static_cast<int>(layer_work(graph).size());
    for (const int stages : {1, 2, 3, 5, layers}) {
      if (stages > layers) continue;
      for (const bool splits_weights : {false, true}) {
        const CutRun cut = run_cut(graph, loader, stages, splits_weights);
        EXPECT_EQ(cut.loss, whole.loss) << network.name << " in " << stages;
        ASSERT_EQ(cut.contributions.size(), whole.contributions.size());
        for (const auto& [name, numbers] : whole.contributions)
          EXPECT_TRUE(same_bits(numbers, cut.contributions.at(name)))
              << network.name << " in " << stages << " stages: " << name;
      }
    }
  }
}

TEST(Place, SharedWeightsBelongToOneStageAndAreCopiedToTheOther) {
  const auto data = data::make_synthetic("train", cases()[5].data);
  const auto model = models::make_model(
      "gpt", inputs_of(*data),
      table({{"width", integer(16)}, {"heads", integer(2)}, {"layers", integer(2)}, {"tied", Option{true}}}));
  const Graph graph = optimise(std::move(model->training(4).front().graph));
  const PlacedGraph placed = place_nodes(graph, cut_into_stages(layer_work(graph), 2));
  ASSERT_EQ(placed.copies.size(), 1u);
  EXPECT_EQ(placed.copies[0].owner, 0);
  EXPECT_EQ(placed.copies[0].reader, 1);
}

TEST(Place, MessagesGoForwardInForwardAndBackInBackward) {
  const auto data = data::make_synthetic("train", cases()[2].data);
  const auto model = models::make_model("resnet20", inputs_of(*data), {});
  const Graph graph = optimise(std::move(model->training(8).front().graph));
  const PlacedGraph placed = place_nodes(graph, cut_into_stages(layer_work(graph), 4));
  EXPECT_FALSE(placed.messages.empty());
  for (const StageMessage& m : placed.messages) {
    EXPECT_EQ(m.pass == Pass::forward, m.from < m.to);
    EXPECT_GT(m.bytes, 0);
  }
}

TEST(Stages, TheLargestStageIsAsSmallAsCanBe) {
  const std::vector<double> work{5, 1, 1, 9, 2, 2, 2, 7, 1};
  std::vector<LayerWork> layers;
  for (std::size_t i = 0; i < work.size(); ++i) layers.push_back({"l" + std::to_string(i), work[i], 1});
  for (int stages = 1; stages <= 9; ++stages) {
    const StagePartition cut = cut_into_stages(layers, stages);
    double largest = 0;
    std::size_t at = 0;
    for (const auto& stage : cut.layers) {
      double sum = 0;
      for (std::size_t i = 0; i < stage.size(); ++i) sum += work[at++];
      largest = std::max(largest, sum);
      EXPECT_FALSE(stage.empty());
    }
    EXPECT_EQ(at, work.size());
    // Every way to put `stages - 1` borders between nine layers.
    double best = 1e9;
    for (unsigned borders = 0; borders < 256; ++borders) {
      if (std::popcount(borders) != stages - 1) continue;
      double sum = 0, most = 0;
      for (std::size_t i = 0; i < work.size(); ++i) {
        sum += work[i];
        most = std::max(most, sum);
        if (borders >> i & 1) sum = 0;
      }
      best = std::min(best, most);
    }
    EXPECT_EQ(largest, best) << stages;
  }
}

TEST(Stages, OneLongLayerDoesNotLeaveTheOthersUneven) {
  std::vector<LayerWork> layers;
  for (const double work : {20.0, 50.0, 12.0, 8.0, 6.0, 1.0})
    layers.push_back({"l" + std::to_string(layers.size()), work, 1.0 / static_cast<double>(1 + layers.size())});
  const StagePartition cut = cut_into_stages(layers, 4);
  EXPECT_EQ(cut.layers[2], std::vector<std::string>{"l2"});  // not the last layer alone, where least is sent
  EXPECT_EQ(cut.layers[3].size(), 3u);
}

TEST(Stages, AmongEqualCutsTheOneThatSendsLeastIsTaken) {
  std::vector<LayerWork> layers;
  for (int i = 0; i < 4; ++i) layers.push_back({"l" + std::to_string(i), 0, 100.0 - i});
  layers[1].work = layers[3].work = 10;  // a border after l1 or after l2 makes equal stages
  const StagePartition cut = cut_into_stages(layers, 2);
  EXPECT_EQ(cut.layers[0].back(), "l2");
}

}  // namespace
}  // namespace echelon
