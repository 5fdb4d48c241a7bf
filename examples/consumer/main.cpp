// A network trained by the installed library: LeNet-5 on pictures made up on the spot, a few steps of Adam, then
// the share of other pictures of the same kind that it tells apart.

#include <fmt/format.h>

#include "data/open.h"
#include "models/zoo.h"
#include "parallel/step/evaluator.h"
#include "parallel/step/trainer.h"
#include "recipe/prepare.h"
#include "recipe/toml.h"

using namespace echelon;

namespace {

Optim adam() {
  Problems problems;
  const Options table = parse_toml("name = 'adam'\nlr = 0.002\n", "main.cpp");
  OptionReader reader(table, problems);
  Optim optim = read_optim(reader);
  problems.throw_if_any("main.cpp");
  return optim;
}

}  // namespace

int main() {
  const auto disk = make_real_disk();
  const Options table =
      parse_toml("kind = 'synthetic'\nmake = 'images'\nshape = [1, 28, 28]\nclasses = 10\n", "main.cpp");
  const auto train = data::shuffled(data::open_dataset(*disk, table, "train"));
  const auto test = data::open_dataset(*disk, table, "test");
  const auto model = models::make_model("lenet5", input_spec(train->info()));

  constexpr int shards = 2, steps = 80;
  constexpr std::uint64_t seed = 1, batch = 32;
  LocalTeam alone(available_cores());  // the weights do not depend on how many cores
  Trainer trainer({.model = model.get(), .fields = train->fields(), .shards = shards, .seed = seed}, adam, alone.team);
  data::Loader loader(train, {.seed = seed, .batches = {{0, batch}}, .shards = shards});
  for (std::uint64_t step = 0; step < steps; ++step) {
    const StepResult result = trainer.step(step, 0.002, loader.at(step));
    if (step % 10 == 0) fmt::print("step {:>3}  loss {:.4f}\n", step, result.loss);
  }

  Evaluator evaluator(*model, trainer.table(), trainer.parameters(), test, 256, alone.team);
  const Evaluation result = evaluator.run();
  fmt::print("{} of {} weights: {:.1f} % of {} other pictures\n", model->name(), trainer.table().weights(),
             100 * result.accuracy, result.samples);
  return result.accuracy > 0.9 ? 0 : 1;
}
