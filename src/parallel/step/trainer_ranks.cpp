// What a trainer does only if it is not alone: saying where it is, sending buckets, sharing losses, handing state
// around.

#include <algorithm>

#include "parallel/step/trainer_phase.h"
#include "world/channels.h"

namespace echelon {

// With several ranks: says where this one is, lets simulated time pass, and sends what is complete.
void Trainer::after_node(TrainerPhase& phase, int core, std::int64_t slice, std::size_t node, bool last, bool taken) {
  if (!goes_node_by_node()) return;
  const NodeActions& m = phase.node_actions.at(slice)[node];
  if (core == 0) {
    team_.world().set_status(m.doing);
    if (!taken) team_.world().compute(m.flops);
  }
  if (!last || m.completes.empty()) return;
  if (core == 0) simulate_slowness();  // before others see what is complete
  for (std::size_t bucket : m.completes) complete(phase, core, bucket);
}

void Trainer::complete(TrainerPhase& phase, int core, std::size_t bucket) {
  const Bucket& b = phase.buckets[bucket];
  reducers_[static_cast<std::size_t>(team_.number(core))]->fold_part(b.begin, b.end);
  if (--bucket_missing_[bucket] > 0) return;
  if (rank_sum_) return rank_sum_->complete(bucket);
  sum_over_shards(shards_, partials_, b.begin, b.end, total_.data());
  bucket_ready_(bucket);
}

namespace {

// The node after which a parameter's contribution is complete, for every parameter of the plan's graph; -1: it has
// none.
std::vector<int> completing_nodes(const Graph& graph) {
  std::vector<int> nodes;
  for (const auto& contribution : graph.contributions()) {
    nodes.push_back(-1);
    if (!contribution) continue;
    for (std::size_t n = 0; n < graph.nodes().size(); ++n)
      if (std::ranges::find(graph.nodes()[n].out, contribution) != graph.nodes()[n].out.end())
        nodes.back() = static_cast<int>(n);
  }
  return nodes;
}

double flops_of(const Graph& graph, const Node& node) {
  return node.op->flops(graph.types(node.in), graph.types(node.out));
}

}  // namespace

std::vector<NodeActions> Trainer::node_actions(const TrainerPhase& phase, std::int64_t slice) const {
  const Graph& graph = phase.plans.at(slice).graph;
  std::vector<NodeActions> list;
  for (const Node& node : graph.nodes())
    list.push_back({.doing = fmt::format("{} of {}", node.backward ? "backward" : "forward",
                                         node.layer.empty() ? node.op->name() : node.layer),
                    .flops = flops_of(graph, node),
                    .completes = {}});
  int product = 0;
  for_each_thin_product(graph, table_, [&](const ThinProduct&, std::size_t node) { list[node].product = product++; });
  for (std::size_t n = 0; n < list.size(); ++n)
    if (!graph.nodes()[n].backward)
      for (const Value v : graph.nodes()[n].in)
        if (graph.info(v).source == ValueInfo::Source::parameter) {
          const auto& name = graph.parameters()[static_cast<std::size_t>(graph.info(v).producer)].name;
          const ParameterTable::Entry& e = table_.find(name);
          list[n].reads.push_back({e.offset, e.offset + e.size});
        }
  const std::vector<int> nodes = completing_nodes(graph);
  for (std::size_t b = 0; b < phase.buckets.size(); ++b) {
    int last = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::size_t offset = table_.find(graph.parameters()[i].name).offset;
      if (offset >= phase.buckets[b].begin && offset < phase.buckets[b].end) last = std::max(last, nodes[i]);
    }
    list[static_cast<std::size_t>(last)].completes.push_back(b);
  }
  return list;
}

void Trainer::prepare_ranks(TrainerPhase& phase, const data::Batch& batch) {
  constexpr std::int64_t warm_up = 2;  // steps until the times mean something
  if (rank_sum_ && phase.buckets.empty())
    phase.buckets = {{phase.segments.front().offset, phase.segments.back().offset + phase.segments.back().size}};
  if (rank_sum_ && steps_ == warm_up) {
    phase.buckets = agree_on_buckets(phase, batch);
    phase.node_actions.clear();
  }
  const ShardRange own = own_shards();
  for (int s = own.first; s < own.last; ++s) {
    const auto slice = static_cast<std::int64_t>(batch.slice(static_cast<std::uint64_t>(s)).count);
    if (slice > 0 && !phase.node_actions.contains(slice)) phase.node_actions[slice] = node_actions(phase, slice);
  }
}

// When each parameter's gradient is complete, at that many floating-point operations a second.
std::vector<ReadyPiece> Trainer::ready_pieces(const Graph& graph, double speed, double start) const {
  std::vector<double> after(graph.nodes().size());
  double time = start;
  for (std::size_t n = 0; n < after.size(); ++n) after[n] = time += flops_of(graph, graph.nodes()[n]) / speed;
  std::vector<ReadyPiece> pieces;
  const std::vector<int> nodes = completing_nodes(graph);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i] < 0) continue;
    const ParameterTable::Entry& e = table_.find(graph.parameters()[i].name);
    pieces.push_back({e.offset, e.offset + e.size, after[static_cast<std::size_t>(nodes[i])]});
  }
  return pieces;
}

// Rank 0 chooses from when it expects each gradient (the last step took so long) and what a sum costs (measured as
// well); the others do as it says.
std::vector<Bucket> Trainer::agree_on_buckets(TrainerPhase& phase, const data::Batch& batch) {
  std::vector<double> borders(2 * phase.segments.size() + 1);
  if (team_.world().rank() == 0) {
    const auto slice = static_cast<std::int64_t>(batch.slice(0).count);
    phase.plans.prepare(slice);  // with more ranks than shards rank 0 may have none
    const Graph& graph = phase.plans.at(slice).graph;
    const ShardRange own = shards_of_core(0);
    const double shards = std::max(1, own.count());
    const double speed = std::max(1.0, phase.plans.at(slice).flops * shards / phase.compute_seconds);
    // Buckets go out during the last shard.
    const auto pieces = ready_pieces(graph, speed, phase.plans.at(slice).flops / speed * (shards - 1));
    const auto chosen = choose_buckets(pieces, [&](std::size_t bytes) { return rank_sum_->seconds(bytes); });
    borders[0] = static_cast<double>(chosen.size());
    for (std::size_t b = 0; b < chosen.size(); ++b)
      borders[2 * b + 1] = static_cast<double>(chosen[b].begin),
                      borders[2 * b + 2] = static_cast<double>(chosen[b].end);
  }
  team_.broadcast(std::as_writable_bytes(std::span(borders)));
  std::vector<Bucket> buckets;
  auto number = [&](std::size_t i, std::size_t most) {  // it has come over a wire
    if (!(borders[i] >= 0 && borders[i] <= static_cast<double>(most)))
      fail("rank 0 has sent buckets that make no sense");
    return static_cast<std::size_t>(borders[i]);
  };
  const std::size_t count = number(0, phase.segments.size());
  for (std::size_t b = 0; b < count; ++b) {
    buckets.push_back({number(2 * b + 1, table_.floats()), number(2 * b + 2, table_.floats())});
    if (buckets.back().begin >= buckets.back().end) fail("rank 0 has sent an empty bucket");
  }
  return buckets;
}

// How the others get to know this rank's losses and wish to stop, where there is no memory in common.
void Trainer::share_losses(TrainerPhase& phase) {
  const World& world = team_.world();
  auto for_each_number = [&](auto&& visit) {  // in the order of ranks
    for (Rank r = 0; r < world.size(); ++r) {
      visit(r, wants_stop_[static_cast<std::size_t>(r)]);
      const ShardRange range = shards_of(r, world.size(), shards_);
      for (int s = range.first; s < range.last; ++s) visit(r, phase.loss[static_cast<std::size_t>(s)]);
      for (int s = range.first; s < range.last; ++s) visit(r, phase.correct[static_cast<std::size_t>(s)]);
    }
  };
  if (shared_.empty()) {
    shared_.resize(static_cast<std::size_t>(2 * shards_ + world.size()));
    shared_counts_.resize(static_cast<std::size_t>(world.size()));
    for_each_number([&](Rank r, double&) { ++shared_counts_[static_cast<std::size_t>(r)]; });
  }
  std::size_t i = 0;
  for_each_number([&](Rank, double& number) { shared_[i++] = number; });
  team_.share(shared_, shared_counts_);
  i = 0;
  for_each_number([&](Rank, double& number) { number = shared_[i++]; });
}

Rank Trainer::rank_of(int shard) const {
  Rank r = 0;
  while (shard >= shards_of(r, team_.world().size(), shards_).last) ++r;
  return r;
}

void Trainer::wait_for_the_end_of(Rank rank) {
  std::byte none;
  World& world = team_.world();
  world.set_status("waiting for what went wrong");
  Work never = world.receive(rank, silent_channel, {}, std::span(&none, 1));
  never.wait(world.now() + 60);
  throw Failure(fmt::format("rank {} did not say what went wrong with its loss", rank));
}

void Trainer::begin_reading() {
  if (!rank_sum_) return;  // all ranks have met at the end of the update
  std::vector<std::size_t> counts;
  for (auto& phase : phases_) {
    if (phase->carries.empty()) continue;
    counts.clear();
    for (Rank r = 0; r < team_.world().size(); ++r) {
      const ShardRange range = shards_of(r, team_.world().size(), shards_);
      counts.push_back(phase->carries.of(range.first, range.last).size());
    }
    team_.share(phase->carries.all(), counts);
  }
}

// Carried values are written from the start of a step on; everything else only after all ranks have met.
void Trainer::end_of_reading() {
  const bool carries = std::ranges::any_of(phases_, [](const auto& phase) { return !phase->carries.empty(); });
  if (carries && team_.ranks() > 1) cores_.run([&](int core) { team_.barrier(core, "a checkpoint"); });
}

void Trainer::broadcast_state() {
  if (team_.world().size() == 1) return;
  if (!rank_sum_) return cores_.run([&](int core) { team_.barrier(core, "the start"); });
  team_.broadcast(std::as_writable_bytes(parameters_));
  for (const StateSpan& s : state()) team_.broadcast(s.bytes);
}

RankTimes Trainer::times() const {
  RankTimes t = times_;
  const auto waited = rank_sum_ ? rank_sum_->waited() : team_.waited();
  std::ranges::copy(waited, t.waiting_for.begin());
  if (rank_sum_) t.exchange += rank_sum_->busy();
  return t;
}

std::vector<std::size_t> Trainer::bucket_sizes() const {
  std::vector<std::size_t> sizes;
  for (const auto& phase : phases_)
    for (const Bucket& b : phase->buckets) sizes.push_back(b.end - b.begin);
  return sizes;
}

}  // namespace echelon
