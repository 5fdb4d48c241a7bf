// How near a real pipeline comes to what its schedule allows: a GPT on two processes, 8 micro-batches,
//     bench_pipeline [SCHEDULE] [STEPS]
// The bound is the schedule replayed with the processor time that the passes of the stages took in the same steps, and
// the update after it; the ratio of the two is printed for every step, and their median. Data parallel 2 runs in turn
// with it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "data/formats/synthetic.h"
#include "models/zoo.h"
#include "optim/optim.h"
#include "parallel/engine.h"
#include "plan/layout.h"
#include "plan/replay.h"
#include "world/launch.h"
#include "world/os/cores.h"

namespace echelon {
namespace {

constexpr int micro_batches = 8;
constexpr std::uint64_t batch = 32;

struct StageSeconds {  // of one step on a rank; passes are means over micro-batches
  double forward = 0, backward = 0, weights = 0, update = 0;
};

double median(std::vector<double> v) {
  std::ranges::sort(v);
  return v.empty() ? 0 : v[v.size() / 2];
}

Optim adam() {
  Options settings;
  settings.items["name"] = {std::string("adam")};
  Problems problems;
  OptionReader reader(settings, problems);
  return read_optim(reader);
}

// One way to train: what every step took, and what its passes took without waiting.
class Way {
 public:
  Way(const models::Model& model, const data::DatasetPtr& data, const PlanSpec& plan, Team& team)
      : plan_(plan), team_(team) {
    engine_ = make_engine({.model = &model,
                           .make_optim = adam,
                           .fields = data->fields(),
                           .shards = micro_batches,
                           .seed = 1,
                           .plan = &plan_},
                          batch, nullptr, team);
    data::LoaderOptions options{.seed = 1, .batches = {{0, batch}}, .prefetch = 0};
    engine_->adapt(options);
    loader_ = std::make_unique<data::Loader>(data, options);
    engine_->watch({.now = [&team] { return team.world().now(); },
                    .on_node =
                        [this](int, const Node& node, double begin, double end) {
                          const auto name = node.op->name();
                          if (name != "send" && name != "receive") computed_ += end - begin;
                        },
                    .on_span =
                        [this](const Span& span) {
                          if (span.name == std::string_view("update")) now_.update += span.end - span.begin;
                        },
                    .on_task =
                        [this](const StageTask& task, double, double) {
                          double& sum = task.pass == Pass::forward    ? now_.forward
                                        : task.pass == Pass::backward ? now_.backward
                                                                      : now_.weights;
                          sum += computed_ / micro_batches;
                          computed_ = 0;
                        }});
  }

  void step(std::int64_t number) {
    now_ = {};
    computed_ = 0;
    const double begin = team_.world().now();
    engine_->run({.from = number,
                  .to = number + 1,
                  .loader = loader_.get(),
                  .lr = [](std::int64_t) { return 1e-3; },
                  .epoch = [](std::int64_t) { return 0.0; },
                  .asks_to_stop = [] { return false; },
                  .on_progress = [](const StepProgress&) {}});
    seconds_.push_back(team_.world().now() - begin);
    stages_.push_back(team_.all_gather_struct(now_));
  }

  // The replayed schedule with what the passes of that step took.
  double bound(std::size_t step) const {
    const PlanLayout layout(plan_, micro_batches);
    ReplayCosts costs;
    double update = 0;
    for (const StageSeconds& s : stages_[step]) {
      costs.stages.push_back({s.forward, s.backward, s.weights});
      update = std::max(update, s.update);
    }
    return replay(layout.schedule(0), chain_messages(layout.stages()), costs).seconds + update;
  }
  const std::vector<double>& seconds() const { return seconds_; }

 private:
  const PlanSpec plan_;
  Team& team_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<data::Loader> loader_;
  double computed_ = 0;  // since the last task ended
  StageSeconds now_;
  std::vector<double> seconds_;
  std::vector<std::vector<StageSeconds>> stages_;  // by step and rank
};

void measure(World& world, const std::string& schedule, int steps) {
  const auto data = data::make_synthetic(
      "train", {.kind = data::SyntheticOptions::Kind::tokens, .samples = 4096, .shape = {65}, .classes = 256});
  models::InputSpec text{.inputs = {{data->fields()[0].name, {data->fields()[0].dtype, data->fields()[0].shape}}},
                         .target = {data->fields()[1].name, {data->fields()[1].dtype, data->fields()[1].shape}},
                         .classes = 256};
  Options options;
  const auto set = [&](const char* key, std::int64_t value) { options.items[key] = {value}; };
  set("width", 256), set("heads", 4), set("layers", 4);
  const auto model = models::make_model("gpt", text, options);
  Cores cores(1);
  Team team(world, cores, true);
  Way pipeline(*model, data, {.data = 1, .pipeline = 2, .schedule = schedule}, team);
  Way replicas(*model, data, {.data = 2}, team);
  for (int s = 0; s < steps; ++s) pipeline.step(s), replicas.step(s);
  if (world.rank() != 0) return;
  std::vector<double> ratios, beside;
  fmt::print("gpt of width 256, 4 layers, 2 processes, {} micro-batches of {}, {}\n", micro_batches,
             batch / micro_batches, schedule);
  for (std::size_t s = 2; s < pipeline.seconds().size(); ++s) {  // the first ones make buffers
    ratios.push_back(pipeline.bound(s) / pipeline.seconds()[s]);
    beside.push_back(replicas.seconds()[s] / pipeline.seconds()[s]);
    fmt::print("step {}: {:.1f} ms, bound {:.1f} ms, {:.3f} of it; data parallel 2 {:.1f} ms\n", s,
               1e3 * pipeline.seconds()[s], 1e3 * pipeline.bound(s), ratios.back(), 1e3 * replicas.seconds()[s]);
  }
  fmt::print("median: {:.3f} of the schedule's own bound, {:.3f} of data parallel 2\n", median(ratios), median(beside));
}

}  // namespace
}  // namespace echelon

int main(int argc, char** argv) {
  const std::string schedule = argc > 1 ? argv[1] : "1f1b";
  const int steps = argc > 2 ? std::atoi(argv[2]) : 12;
  if (!echelon::find_schedule(schedule)) return fmt::print(stderr, "there is no schedule {}\n", schedule), 2;
  echelon::run_in_processes(2, {}, [&](echelon::World& world) { echelon::measure(world, schedule, steps); });
}
