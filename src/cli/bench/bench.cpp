#include "cli/bench/bench.h"

#include "cli/verbs.h"

namespace echelon::cli {

void add_bench(Verb program) {
  const Verb bench = program.add_subcommand("bench", "Measure what this machine gives");
  bench.require_subcommand(1);
  bench.footer("Example:\n  echelon bench train --model resnet18 --cores 2");
  add_bench_train(bench);
  add_bench_predict(bench);
  add_bench_collective(bench);
}

}  // namespace echelon::cli
