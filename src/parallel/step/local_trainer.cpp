#include "parallel/step/local_trainer.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/vector.h"
#include "parallel/step/block_update.h"
#include "parallel/step/not_finite.h"

namespace echelon {

namespace {

Update::Memory memory_in(std::vector<Buffer>& buffers) {
  return [&buffers](const std::string&, std::size_t bytes) { return buffers.emplace_back(bytes).as<std::byte>(); };
}

}  // namespace

LocalTrainer::LocalTrainer(const ComputeSettings& settings, const std::function<Optim()>& make_optim, World& world,
                           Cores& cores)
    : world_(world),
      cores_(cores),
      compute_(settings, world, cores, {}, memory_in(memory_)),
      total_(compute_.place_for_sum()),
      whole_{0, settings.shards, total_.data()} {
  invariant(compute_.phases().size() == 1, "a step in two halves is for models with one phase");
  Optim optim = make_optim();
  update_ = std::make_unique<Update>(std::move(optim.rule), optim.clip, phase().segments, parameters(), total_,
                                     memory_in(memory_));
}

StepResult LocalTrainer::compute(std::uint64_t step, const data::Batch& batch, double mean_over) {
  compute_.prepare(batch);
  // Parts of one global batch have random streams of their own.
  const StepContext context{.seed = compute_.settings().seed + batch.part() * 0x9E3779B97F4A7C15ull,
                            .step = static_cast<std::uint32_t>(step)};
  bool finite = true;
  cores_.run([&](int core) {
    compute_.run(phase(), core, batch, context, mean_over);
    cores_.barrier();
    if (core == 0) finite = ShardCompute::sum_losses(phase());
    if (!hooks().bucket_complete)
      sum_blocks({*update_, core, cores_.count(), shards(), compute_.partial_sums(), total_.data()});
  });
  if (!finite) explain_not_finite(compute_, phase(), batch, context, shard_not_finite(phase()));
  if (batch.samples() == 0)  // nothing was seen: statistics stay where they are
    for (const TrainedSpan& s : segments())
      if (s.statistic) kernels::copy(total_.data() + s.offset, parameters().data() + s.offset, s.size);
  const std::int64_t done = compute_.samples_done();
  if (compute_.handed_in_early() && done > 0)
    kernels::scale(total_.data(), total_.data(),
                   static_cast<float>(static_cast<double>(batch.samples()) / static_cast<double>(done)), total_.size());
  const ShardLoss& total = phase().total;
  StepResult result{.correct = total.correct, .samples = done, .terms = done * phase().loss_terms};
  if (done > 0) result.loss = total.loss / static_cast<double>(result.terms);
  return result;
}

void LocalTrainer::update(std::uint64_t step, double lr) {
  const double begin = world_.now();
  update_->begin({.number = static_cast<std::int64_t>(step) + 1, .lr = lr, .grad_scale = 1});
  cores_.run([&](int core) {
    sum_and_update(
        {*update_, core, cores_.count(), shards(), std::span(&whole_, 1), total_.data()}, core == 0,
        [&](const char*) { cores_.barrier(); },
        [&] {
          if (core == 0) hooks().watch.span({"update", begin, world_.now()});
        });
  });
}

void LocalTrainer::send_buckets(std::size_t least_bytes, std::function<void(std::size_t)> ready) {
  const Graph& graph = compute_.plan(phase(), 1).graph;
  compute_.set_buckets(phase(), fuse_pieces(ready_pieces(graph, table(), 1, 0), least_bytes));
  hooks().bucket_complete = nullptr;
  if (ready)
    hooks().bucket_complete = [this, ready = std::move(ready)](std::size_t bucket) {
      const Bucket& b = buckets()[bucket];
      sum_over_shards(shards(), compute_.partial_sums(), b.begin, b.end, total_.data());
      ready(bucket);
    };
}

std::vector<ThinProduct> LocalTrainer::thin_products() {
  std::vector<ThinProduct> products;
  for_each_thin_product(compute_.plan(phase(), 1).graph, table(),
                        [&](const ThinProduct& p, std::size_t) { products.push_back(p); });
  return products;
}

std::vector<Range> LocalTrainer::reading_order() {
  return echelon::reading_order(compute_.plan(phase(), 1).graph, table());
}

// On zeros, as many samples as a shard has: what the numbers are hardly matters.
std::vector<ForwardNode> LocalTrainer::time_forward() {
  const std::int64_t samples = compute_.settings().largest_shard;
  const Graph& graph = compute_.plan(phase(), samples).graph;
  Executor& executor = phase().runners[0].executor(samples);
  std::vector<std::size_t> nodes;
  std::vector<ForwardNode> list = forward_nodes(graph, table(), nodes);
  const std::vector<NodeActions> actions = node_actions(graph, table(), {});
  constexpr int repeats = 3;
  for (int r = 0; r < repeats; ++r) {
    for (const auto& [name, bytes] : executor.inputs()) std::ranges::fill(bytes, std::byte{});
    for (std::size_t i = 0; i < list.size(); ++i) {
      const double begin = world_.now();
      executor.run_node({.seed = compute_.settings().seed, .loss_scale = 1}, nodes[i]);
      world_.compute(actions[nodes[i]].flops);
      const double seconds = world_.now() - begin;
      list[i].seconds = r == 0 ? seconds : std::min(list[i].seconds, seconds);
    }
  }
  return list;
}

std::vector<StateSpan> LocalTrainer::state() {
  std::vector<StateSpan> all;
  for (const Update::Slot& slot : update_->slots()) all.push_back(as_state(slot.name, slot.values));
  if (!phase().carries.empty()) all.push_back(as_state("carries", phase().carries.all()));
  return all;
}

}  // namespace echelon
