#pragma once
// Measures what a recipe's training costs on this machine: a few real steps of the real trainer, on one core and on all
// of them, each operation by itself (parallel/step/compute_hooks.h, Watch). Also what messages and barriers cost
// between ranks of this machine (collective/link_costs.h). What the profile knows already is not measured again.

#include <functional>
#include <string>

#include "foresight/costs/profile.h"
#include "recipe/prepare.h"

namespace echelon::foresight {

struct MeasureOptions {
  double seconds = 1.0;      // about so long, for each number of cores; but at least three steps
  double most_flops = 2e11;  // of a step: what is larger is not run, and the roofline says what it takes
};

// Whether every operation of the recipe's training step is in the profile.
bool is_measured(const PreparedRun& prepared, const Profile& profile);

// Adds what is missing; true if there was something. Starts threads, which have ended when it returns.
bool measure_recipe(const PreparedRun& prepared, Profile& profile, const MeasureOptions& options = {});

// Links between so many ranks on this machine, two at least: in memory, and as --link has them.
bool measure_links(int ranks, Profile& profile);

// Names under which the profile keeps what is no operation of the graph. By model and micro-batch:
std::string shard_shapes(std::size_t floats, std::size_t sample_bytes, std::int64_t samples);
inline constexpr const char* shard_family =
    "shard";  // a micro-batch besides its operations: load it, fold its gradient
inline constexpr const char* input_family = "input";  // making one sample
std::string input_shapes(const PreparedRun& prepared);
std::string update_family(const Recipe& recipe);  // "update momentum": sum over shards and update
std::string update_shapes(std::size_t floats, int shards);

// Of a model: numbers of the flat buffers of parameters, and bytes of a sample.
struct ModelSize {
  std::size_t floats = 0, sample_bytes = 0;
};
ModelSize model_size(const PreparedRun& prepared);
std::int64_t micro_batch(const PreparedRun& prepared);  // samples, of the largest
double step_flops(const PreparedRun& prepared);

}  // namespace echelon::foresight
