#include "parallel/step/not_finite.h"

#include <algorithm>
#include <cmath>

#include "world/channels.h"

namespace echelon {

int shard_not_finite(const ComputePhase& phase) {
  const auto bad = std::ranges::find_if(phase.losses, [](const ShardLoss& l) { return !std::isfinite(l.loss); });
  return static_cast<int>(bad - phase.losses.begin());
}

namespace {

std::optional<NotFinite::BadSample> bad_sample(const ShardCompute& compute, const data::Batch& batch, int shard) {
  const data::IndexRange samples = batch.samples_of(static_cast<std::uint64_t>(shard));
  const auto& fields = compute.settings().fields;
  for (std::uint64_t i = 0; i < samples.count; ++i)
    for (std::size_t f = 0; f < fields.size(); ++f) {
      if (fields[f].dtype != DType::f32) continue;
      const std::size_t size = fields[f].bytes() / sizeof(float);
      const auto values = batch.field_as<float>(static_cast<std::uint64_t>(shard), f).subspan(i * size, size);
      if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); }))
        return NotFinite::BadSample{samples.first + i, batch.cursor().epoch, fields[f].name};
    }
  return std::nullopt;
}

}  // namespace

void explain_not_finite(ShardCompute& compute, ComputePhase& phase, const data::Batch& batch, StepContext context,
                        int shard) {
  const std::span<const float> parameters = compute.parameters();
  for (const auto& e : compute.table().entries())
    for (std::size_t i = 0; i < e.size; ++i)
      if (!std::isfinite(parameters[e.offset + i]))
        throw NotFinite(
            fmt::format("step {}: the loss is not a number, because element {} of parameter '{}' is {}: an earlier "
                        "update overflowed. "
                        "Try a smaller optim.lr, a warm-up (schedule.warmup_steps) or optim.clip_norm",
                        context.step, i, e.parameter.name, parameters[e.offset + i]));
  const auto sample = bad_sample(compute, batch, shard);
  context.shard = static_cast<std::uint32_t>(shard);
  Executor& e = compute.load(phase, batch, shard);
  if (const int node = e.run_until_not_finite(context); node >= 0) {
    const Node& n = e.plan().graph.nodes()[static_cast<std::size_t>(node)];
    throw NotFinite(
        fmt::format("step {}: the loss is not a number. The first operation with a result that is not finite was {} in "
                    "layer '{}' (shard {}). {}",
                    context.step, n.op->name(), n.layer, shard,
                    sample ? "Its input is not finite: look at the data"
                           : "Try a smaller optim.lr, a warm-up (schedule.warmup_steps) or optim.clip_norm"),
        sample);
  }
  throw NotFinite(fmt::format("step {}: the loss is not a number", context.step), sample);
}

void wait_for_explanation(World& world, Rank rank) {
  std::byte none;
  world.set_status("waiting for what went wrong");
  Work never = world.receive(rank, silent_channel, {}, std::span(&none, 1));
  never.wait(world.now() + 60);
  throw Failure(fmt::format("rank {} did not say what went wrong with its loss", rank));
}

}  // namespace echelon
