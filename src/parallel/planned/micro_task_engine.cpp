#include "parallel/planned/micro_task_engine.h"

#include <algorithm>

#include "collective/collectives.h"
#include "collective/shard_sum.h"

namespace echelon {

MicroTaskEngine::MicroTaskEngine(const EngineSettings& settings, Team& team)
    : PlannedEngine(settings, team),
      stage_(*stages_.front()),
      group_(*groups_.front()),
      sums_(settings.shards, stage_.gradient().size()),
      taken_by_(losses_.size()),
      marks_(losses_.size() * stops_.size()),
      all_losses_(marks_.size()) {}

Reached MicroTaskEngine::run(const StepRange& range) {
  tasks_ = std::make_unique<MicroTasks>(team_, settings_.shards);
  const Reached reached = PlannedEngine::run(range);
  tasks_->close();
  tasks_.reset();
  return reached;
}

void MicroTaskEngine::run_tasks(std::uint64_t step, const data::Batch& batch, std::uint64_t seed, double slowness) {
  taken_.clear();
  sums_.start_step();
  while (const std::optional<int> shard = tasks_->next(static_cast<std::int64_t>(step))) {
    run_micro_batch(*shard, step, batch, seed, slowness);
    sums_.add(*shard, stage_.contribution());
    taken_.push_back(*shard);
  }
  done_ += static_cast<double>(taken_.size());
}

void MicroTaskEngine::share_losses() {
  const std::size_t shards = losses_.size(), mine = static_cast<std::size_t>(world_.rank()) * shards;
  std::fill_n(marks_.begin() + static_cast<std::ptrdiff_t>(mine), shards, 0);
  for (const int s : taken_) marks_[mine + static_cast<std::size_t>(s)] = 1;
  std::ranges::copy(losses_, all_losses_.begin() + static_cast<std::ptrdiff_t>(mine));
  const std::vector<std::size_t> counts(stops_.size(), shards), one(stops_.size(), 1);
  team_.all_gather_structs(std::span(marks_), counts);
  team_.all_gather_structs(std::span(all_losses_), counts);
  team_.all_gather_structs(std::span(stops_), one);
  for (std::size_t s = 0; s < shards; ++s)
    for (std::size_t r = 0; r < stops_.size(); ++r)
      if (marks_[r * shards + s] != 0) {
        taken_by_[s] = static_cast<std::int32_t>(r);
        losses_[s] = all_losses_[r * shards + s];
      }
}

void MicroTaskEngine::sum_over_ranks() {
  share_carries();
  const std::size_t floats = stage_.gradient().size();
  const int n = group_.size(), me = group_.index();
  const Range mine = owned(me, n, 0, floats);
  std::vector<PartialSum> all(sums_.sums().begin(), sums_.sums().end());
  std::vector<std::pair<Work, Rank>> under_way;
  std::size_t piece = 0;
  const Label label{.kind = OperationKind::reduce_scatter, .type = 1, .number = ++operation_};
  for (int m = 0; m < n; ++m) {
    if (m == me) continue;
    std::vector<int> theirs;
    for (std::size_t s = 0; s < taken_by_.size(); ++s)
      if (taken_by_[s] == group_.rank_of(m)) theirs.push_back(static_cast<int>(s));
    for (const ShardRange& node : TakenSums::nodes_of(settings_.shards, theirs)) {
      if (piece == pieces_.size()) pieces_.emplace_back();
      std::vector<float>& into = pieces_[piece++];
      into.resize(mine.count());
      all.push_back({node.first, node.last, into.data() - mine.begin});
      under_way.emplace_back(
          world_.receive(group_.rank_of(m), group_.channel(), label, std::as_writable_bytes(std::span(into))),
          group_.rank_of(m));
    }
  }
  for (int k = 1; k < n; ++k) {
    const int to = (me + k) % n;
    const Range theirs = owned(to, n, 0, floats);
    for (const PartialSum& sum : sums_.sums())
      under_way.emplace_back(world_.send(group_.rank_of(to), group_.channel(), label,
                                         std::as_bytes(std::span(sum.data + theirs.begin, theirs.count()))),
                             group_.rank_of(to));
  }
  WaitPolicy& policy = group_.wait_policy();
  for (auto& [work, peer] : under_way) {
    policy.begin({}, "with sums over micro-batches");
    policy.wait(work, peer);
    policy.end();
  }
  std::ranges::sort(all, {}, &PartialSum::first);
  float* total = stage_.gradient().data();
  sum_over_shards(settings_.shards, all, mine.begin, mine.end, total);
  if (n > 1) all_gather_owned(group_, total, 0, floats, "of a step's gradient");
}

void MicroTaskEngine::share_carries() {
  CarryStore& carries = stage_.carries();
  if (carries.empty() || group_.size() == 1) return;
  for (std::size_t s = 0; s < taken_by_.size(); ++s)
    broadcast(group_, typed_span(carries.of(static_cast<int>(s))), taken_by_[s], "of what a micro-batch carries on");
}

std::vector<Figure> MicroTaskEngine::figures() {
  std::vector<Figure> figures = PlannedEngine::figures();
  int rank = 0;
  for (const double done : team_.all_gather_struct(done_))
    figures.emplace_back(fmt::format("micro_batches_rank_{}", rank++), done);
  return figures;
}

}  // namespace echelon
