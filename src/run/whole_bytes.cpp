#include "run/whole_bytes.h"

#include <algorithm>

#include "collective/shard_tree.h"
#include "graph/program.h"
#include "parallel/step/shard_runner.h"

namespace echelon {

std::vector<RankBytes> whole_model_bytes(const PreparedRun& prepared, int ranks, int cores, bool by_messages) {
  const int shards = static_cast<int>(prepared.recipe.train.shards);
  const auto largest = static_cast<std::int64_t>(prepared.batch_sequence().largest_batch());
  ParameterTable table;
  std::size_t arena = 0;
  for (models::Phase& phase : prepared.model->training((largest + shards - 1) / shards)) {
    table.include(phase.graph);
    arena = std::max(arena, compile(std::move(phase.graph)).memory.arena_bytes);
  }
  table.include(prepared.model->evaluation(1));
  const std::size_t whole = table.floats() * sizeof(float);
  std::vector<RankBytes> all;
  for (int rank = 0; rank < ranks; ++rank) {
    RankBytes& bytes = all.emplace_back();
    bytes.parameters = whole;
    bytes.state = make_optim(prepared.recipe).rule->slots().size() * whole;
    if (by_messages) bytes.contributions = whole;
    for (int core = 0; core < cores; ++core) {
      const ShardRange own = shards_of(rank, ranks, core, cores, shards);
      if (own.count() == 0) continue;
      bytes.contributions += ShardReducer::memory_bytes(shards, own.first, own.last, table.floats());
      bytes.activations += arena;
    }
  }
  return all;
}

}  // namespace echelon
