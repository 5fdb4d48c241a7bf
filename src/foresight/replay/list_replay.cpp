#include "foresight/replay/list_replay.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace echelon::foresight {

namespace {
constexpr double not_yet = std::numeric_limits<double>::infinity();
}

ListReplay::ListReplay(const PlanLayout& layout, const Platform& platform, const std::vector<StageMessage>& messages,
                       const std::vector<StagePasses>& stages, int ranks)
    : layout_(layout),
      platform_(platform),
      messages_(messages),
      stages_(stages),
      ranks_(ranks),
      wires_(platform),
      states_(static_cast<std::size_t>(ranks)),
      ends_(static_cast<std::size_t>(ranks)),
      predictions_(static_cast<std::size_t>(ranks)) {
  for (int r = 0; r < ranks; ++r) hosted_.push_back(layout.hosted(r));
  for (int m = 0; m < platform.machines(); ++m)
    core_free_.emplace_back(platform.is_here() && platform.ranks_on(m) > platform.cores_of(m) ? platform.cores_of(m)
                                                                                              : 0);
}

void ListReplay::run() {
  for (int r = 0; r < ranks_; ++r) due_.emplace(0.0, r);
  while (!due_.empty()) {
    const auto [at, rank] = due_.top();
    due_.pop();
    if (advance(rank)) due_.emplace(states_[static_cast<std::size_t>(rank)].clock, rank);
  }
}

ListReplay::MicroBatch ListReplay::micro_batch_of(int rank, const StageTask& task) const {
  const ShardRange own = layout_.shards_of_replica(layout_.replica_of(rank));
  return {own.first + task.micro_batch % own.count() * own.stride, own.first + task.micro_batch * own.stride};
}

const HostedStage& ListReplay::hosted(int rank, const StageTask& task, int shard) const {
  const std::vector<HostedStage>& all = hosted_[static_cast<std::size_t>(rank)];
  const auto it = std::ranges::find_if(
      all, [&](const HostedStage& h) { return h.stage == task.stage && h.shards.contains(shard); });
  invariant(it != all.end(), "a rank's list has only what the rank has");
  return *it;
}

bool ListReplay::advance(int rank) {
  RankState& state = states_[static_cast<std::size_t>(rank)];
  const std::vector<StageTask>& list = layout_.list(rank);
  if (state.task == list.size()) {
    ends_[static_cast<std::size_t>(rank)] = state.clock;
    ++done_;
    return false;
  }
  const StageTask& task = list[state.task];
  const MicroBatch of = micro_batch_of(rank, task);
  const HostedStage& stage = hosted(rank, task, of.shard);
  const PassSteps& steps = stages_[static_cast<std::size_t>(stage.stage * layout_.parts() + stage.part)]
                               .of[static_cast<std::size_t>(task.pass)];
  if (state.step == steps.size()) {
    ++state.task, state.step = 0;
    return true;
  }
  const ReplayStep& step = steps[state.step];
  using Kind = ReplayStep::Kind;
  if (step.kind == Kind::sends) {
    if (!send(rank, state, step, of)) return false;
  } else if (step.kind == Kind::receives) {
    if (!receive(rank, state, step, of)) return false;
  } else if (step.kind == Kind::computes) {
    compute(rank, state, platform_.is_here() ? step.seconds : step.flops / platform_.speed(rank));
  } else {
    exchange_state(rank, state, step, stage);
  }
  ++state.step;
  return true;
}

// On the core that is free first, where ranks take turns.
void ListReplay::compute(int rank, RankState& state, double seconds) {
  std::vector<double>& cores = core_free_[static_cast<std::size_t>(platform_.machine_of(rank))];
  double begin = state.clock;
  if (!cores.empty()) {
    double& core = *std::ranges::min_element(cores);
    begin = std::max(begin, core);
    core = begin + seconds;
  }
  predictions_[static_cast<std::size_t>(rank)].compute += seconds + (begin - state.clock);
  state.clock = begin + seconds;
}

bool ListReplay::send(int rank, RankState& state, const ReplayStep& step, MicroBatch of) {
  const StageMessage& m = messages_[static_cast<std::size_t>(step.number)];
  const int line = layout_.line_of(of.shard);
  const int to = layout_.rank_of(layout_.replica_of(rank), line, m.to, m.to_part);
  const Key key{step.number, of.number, to};
  const Sender sender{step.number, rank, line};
  Outgoing& out = outgoing_[sender];
  RankPrediction& prediction = predictions_[static_cast<std::size_t>(rank)];
  const int per_update =
      layout_.schedule(layout_.replica_of(rank)).per_update;  // whole steps under way (plan/replay.h)
  if (const auto buffers = static_cast<std::size_t>(buffers_of(m) * std::max(1, per_update));
      to != rank && out.sent >= buffers) {
    const double taken = out.taken[out.sent - buffers];
    if (taken == not_yet) {
      waiting_senders_[sender] = rank;
      return false;
    }
    if (taken > state.clock) {
      prediction.waits[to] += taken - state.clock;
      state.clock = taken;
    }
  }
  if (const double copying = platform_.copying(m.bytes); copying > 0) {
    state.clock += copying;
    prediction.exchange += copying;
  }
  const double arrives = to == rank ? state.clock : wires_.arrival(rank, to, m.bytes, state.clock);
  if (to != rank) prediction.send(to, m.bytes);
  arrivals_[key] = arrives;
  slot_of_[key] = {sender, out.sent++};
  out.taken.push_back(not_yet);
  if (const auto it = waiting_receivers_.find(key); it != waiting_receivers_.end()) {
    due_.emplace(std::max(arrives, states_[static_cast<std::size_t>(it->second)].clock), it->second);
    waiting_receivers_.erase(it);
  }
  return true;
}

bool ListReplay::receive(int rank, RankState& state, const ReplayStep& step, MicroBatch of) {
  const StageMessage& m = messages_[static_cast<std::size_t>(step.number)];
  const Key key{step.number, of.number, rank};
  const auto it = arrivals_.find(key);
  if (it == arrivals_.end()) {
    waiting_receivers_[key] = rank;
    return false;
  }
  const int from = layout_.rank_of(layout_.replica_of(rank), layout_.line_of(of.shard), m.from, m.from_part);
  RankPrediction& prediction = predictions_[static_cast<std::size_t>(rank)];
  if (it->second > state.clock) {
    prediction.waits[from] += it->second - state.clock;
    state.clock = it->second;
  }
  if (const double copying = platform_.copying(m.bytes); copying > 0) {
    state.clock += copying;
    prediction.exchange += copying;
  }
  const auto [sender, number] = slot_of_[key];
  outgoing_[sender].taken[number] = state.clock;
  arrivals_.erase(it);
  slot_of_.erase(key);
  if (const auto waiting = waiting_senders_.find(sender); waiting != waiting_senders_.end()) {
    due_.emplace(std::max(state.clock, states_[static_cast<std::size_t>(waiting->second)].clock), waiting->second);
    waiting_senders_.erase(waiting);
  }
  return true;
}

// Parameters that are gathered and gradients that are summed among the ranks that have the stage (zero 2, 3).
void ListReplay::exchange_state(int rank, RankState& state, const ReplayStep& step, const HostedStage& stage) {
  const std::vector<int> group = layout_.ranks_of_stage(stage.stage, stage.part);
  const auto n = static_cast<double>(group.size());
  RankPrediction& prediction = predictions_[static_cast<std::size_t>(rank)];
  const double moved = step.bytes * (n - 1) / n;
  const double unequal = stages_[static_cast<std::size_t>(stage.stage * layout_.parts() + stage.part)].unequal;
  if (platform_.is_here() && platform_.shares_memory()) {
    if (step.kind == ReplayStep::Kind::starts_gather) return;
    const double seconds = step.bytes * platform_.links().memory_per_byte +
                           (step.kind == ReplayStep::Kind::contributes ? platform_.links().host_latency * (n - 1) : 0);
    state.clock += seconds;
    prediction.exchange += seconds;
    return;
  }
  const int peer = group[(static_cast<std::size_t>(std::ranges::find(group, rank) - group.begin()) + 1) % group.size()];
  const double seconds =
      peer == rank ? 0 : platform_.latency(rank, peer) + unequal * moved / platform_.bytes_per_second(rank, peer);
  if (step.kind == ReplayStep::Kind::starts_gather) {
    state.gathered[step.number] = state.clock + seconds;
    prediction.send_to_others(group, rank, moved);
  } else if (step.kind == ReplayStep::Kind::finishes_gather) {
    const double there = state.gathered[step.number];
    if (there > state.clock) prediction.waits[peer] += there - state.clock, state.clock = there;
  } else {
    // A rank takes the others' gradients before it goes on, so this hides behind nothing.
    state.clock += seconds;
    prediction.exchange += seconds;
    prediction.send_to_others(group, rank, moved);
  }
}

}  // namespace echelon::foresight
