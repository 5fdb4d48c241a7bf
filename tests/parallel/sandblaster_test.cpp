// Sandblaster L-BFGS: the method on plain vectors, vectors on servers, who computes which piece, and the whole.

#include <gtest/gtest.h>

#include <cmath>

#include "parallel/sandblaster/parts.h"
#include "tests/parallel/systems.h"

namespace echelon {
namespace {

using namespace test;

class PlainVectors : public LbfgsVectors {
 public:
  PlainVectors(int count, std::size_t floats) : values(static_cast<std::size_t>(count), std::vector<double>(floats)) {}
  double dot(int a, int b) override {
    double sum = 0;
    for (std::size_t i = 0; i < at(a).size(); ++i) sum += at(a)[i] * at(b)[i];
    return sum;
  }
  void axpy(int y, double factor, int x) override {
    for (std::size_t i = 0; i < at(y).size(); ++i) at(y)[i] += factor * at(x)[i];
  }
  void scale(int y, double factor, int x) override {
    for (std::size_t i = 0; i < at(y).size(); ++i) at(y)[i] = factor * at(x)[i];
  }
  std::vector<double>& at(int i) { return values[static_cast<std::size_t>(i)]; }
  std::vector<std::vector<double>> values;
};

// Rosenbrock's valley, along which gradient descent needs many thousands of steps.
int steps_down_the_valley(const LbfgsSettings& settings, int most) {
  PlainVectors v(Lbfgs::vectors(settings), 2);
  Lbfgs method(settings, v, [&](int at, int gradient) {
    const double x = v.at(at)[0], y = v.at(at)[1], off = y - x * x;
    v.at(gradient)[0] = -400 * x * off - 2 * (1 - x), v.at(gradient)[1] = 200 * off;
    return 100 * off * off + (1 - x) * (1 - x);
  });
  v.at(Lbfgs::point) = {-1.2, 1};
  double last = 1e9;
  for (int step = 1; step <= most; ++step) {
    const Lbfgs::Step s = method.iterate(step > 1);
    EXPECT_LE(s.loss, last);  // never uphill
    EXPECT_LE(s.evaluations, settings.searches + 1);
    last = s.loss;
    if (s.loss < 1e-12) return step;
  }
  return most + 1;
}

TEST(Lbfgs, FindsTheEndOfAValleyInFewSteps) {
  EXPECT_LT(steps_down_the_valley({}, 100), 60);
  EXPECT_GT(steps_down_the_valley({.history = 1}, 1000), steps_down_the_valley({}, 100));  // what it remembers counts
}

TEST(ServerVectors, DoTheSameOnAnyNumberOfServers) {
  const auto run = [](int servers) {
    double result = 0;
    std::vector<float> whole(10'000);
    run_in_simulation(SimCluster::uniform(servers, 1e-5, 1e9), {}, [&](World& world) {
      Cores cores(1);
      Team team(world, cores, true);
      ServerVectors v(team, whole.size(), 3);
      for (std::size_t i = v.own().begin; i < v.own().end; ++i) {
        v.part(0)[i - v.own().begin] = std::sin(static_cast<float>(i));
        v.part(1)[i - v.own().begin] = std::cos(static_cast<float>(i));
      }
      if (world.rank() == 0) {
        v.scale(2, 3, 0);
        v.axpy(2, -0.5, 1);
        result = v.dot(2, 1);
        v.end();
      } else {
        v.serve([](int, int) {});
      }
      std::vector<float> mine(whole.size());
      v.fetch(2, mine);
      if (world.rank() == servers - 1) whole = mine;
    }).throw_if_failed();
    return std::pair(result, whole);
  };
  const auto one = run(1), three = run(3), five = run(5);
  EXPECT_FLOAT_EQ(one.second[100], 3 * std::sin(100.0f) - 0.5f * std::cos(100.0f));
  EXPECT_EQ(one.first, three.first);
  EXPECT_EQ(one.first, five.first);
  EXPECT_EQ(one.second, three.second);
}

struct Sandblasted {
  std::vector<float> weights;
  double loss = 0, seconds = 0, bytes = 0, messages = 0;
  std::map<std::string, double> figures;
};

Sandblasted sandblast(int workers, int steps, std::vector<Straggler> stragglers = {},
                      const std::string& pieces = "") {
  Sandblasted result;
  std::vector<TrafficCount> sent(static_cast<std::size_t>(workers));
  run_in_simulation(SimCluster::uniform(workers, 1e-5, 1e9, 1e8), {}, [&](World& world) {
    Problems problems;
    const Composition c =
        composition_of("[rule]\nname = 'lbfgs'\n[exchange]\nname = 'coordinator'\n" + pieces, problems);
    check_composition(c, {.workers = workers, .shares_memory = false}, problems);
    problems.throw_if_any("system");
    const SystemJob job;
    const auto data = data::make_synthetic("train", job.network.data);
    const auto model = models::make_model(job.network.name, inputs_of(*data), job.network.options);
    const auto meter = make_metered(world);
    Cores cores(1);
    Team team(*meter, cores, true);
    const auto engine = make_engine({.model = model.get(),
                                     .make_optim = [] { return optim("momentum", {}); },
                                     .fields = data->fields(),
                                     .seed = 3,
                                     .stragglers = stragglers},
                                    256, &c, team);
    data::LoaderOptions options{.seed = 3, .batches = {{0, 256}}};
    engine->adapt(options);
    data::Loader loader(data, options);
    const double begin = world.now();
    engine->run({.from = 0,
                 .to = steps,
                 .loader = &loader,
                 .lr = [](std::int64_t) { return 0.1; },
                 .epoch = [](std::int64_t step) { return static_cast<double>(step); },
                 .asks_to_stop = [] { return false; },
                 .on_progress = [&](const StepProgress& p) { result.loss = p.result.loss; }});
    sent[static_cast<std::size_t>(world.rank())] = *meter->sent();
    const auto figures = engine->figures();
    if (world.rank() == 0) {
      result.seconds = world.now() - begin;
      result.weights.assign(engine->model().begin(), engine->model().end());
      for (const auto& [name, value] : figures) result.figures[name] = value;
    }
    engine->close();
  }).throw_if_failed();
  for (const TrafficCount& s : sent)
    result.bytes += static_cast<double>(s.bytes), result.messages += static_cast<double>(s.messages);
  return result;
}

TEST(Sandblaster, MakesTheSameStepsWhoeverComputesWhat) {
  const Sandblasted one = sandblast(1, 6), four = sandblast(4, 6), slow = sandblast(4, 6, {{2, 7.5, 1}});
  EXPECT_EQ(one.weights, four.weights);
  EXPECT_EQ(one.weights, slow.weights);
  EXPECT_LT(sandblast(4, 20).loss, 0.1 * sandblast(4, 1).loss);
}

TEST(Sandblaster, GivesTheFastMoreAndDoesTheLastOnesTwice) {
  const Sandblasted slow = sandblast(4, 6, {{2, 8, 1}});
  EXPECT_LT(slow.figures.at("pieces_rank_2"), 0.5 * slow.figures.at("pieces_rank_1"));
  EXPECT_GE(slow.figures.at("duplicates"), 1);
  // With one piece for each worker there is nothing to give: everybody waits, or does the slow one's again.
  EXPECT_LT(slow.seconds, sandblast(4, 6, {{2, 8, 1}}, "pieces = 4").seconds);
}

TEST(Sandblaster, SendsWhatItsPageSays) {
  const Sandblasted run = sandblast(4, 6);
  Problems problems;
  const Composition c = composition_of("[rule]\nname = 'lbfgs'\n[exchange]\nname = 'coordinator'", problems);
  const auto each = c.exchange->traffic({.workers = 4, .floats = run.weights.size()});
  // Besides evaluations there are the coordinator's commands, which are small.
  EXPECT_GT(run.bytes, run.figures.at("evaluations") * each.bytes);
  EXPECT_LT(run.bytes, 1.6 * run.figures.at("evaluations") * each.bytes);
}

TEST(Sandblaster, IsRefusedInOtherCompany) {
  const auto text = [](const std::string& system, CompositionFacts facts = {.workers = 4}) {
    Problems problems;
    const Composition c = composition_of(system, problems);
    check_composition(c, facts, problems);
    return problems.empty() ? std::string() : problems.text("recipe");
  };
  EXPECT_NE(text("[rule]\nname='lbfgs'").find("take exchange coordinator"), std::string::npos);
  EXPECT_NE(text("[exchange]\nname='coordinator'").find("not for grad_mean"), std::string::npos);
  const std::string both = "[rule]\nname='lbfgs'\n[exchange]\nname='coordinator'\n";
  EXPECT_EQ(text(both), "");
  EXPECT_NE(text(both + "[when]\ntau=3").find("leave out [when]"), std::string::npos);
  EXPECT_NE(text(both, {.workers = 4, .clips_by_norm = true}).find("clip_norm"), std::string::npos);
}

}  // namespace
}  // namespace echelon
