#include "plan/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"

namespace echelon {

namespace {

Pass last_pass(const PipelineSchedule& s) { return s.splits_weights ? Pass::weights : Pass::backward; }

bool sensible(const PipelineSchedule& s, const StageTask& t) {
  return t.stage >= 0 && t.stage < s.stages && t.micro_batch >= 0 && t.micro_batch < s.micro_batches &&
         t.pass <= last_pass(s) && t.segment >= 0 && t.segment < segments_of(s.segments, t.stage, t.pass);
}

bool ends_pass(const PipelineSchedule& s, const StageTask& t) {
  return t.segment + 1 == segments_of(s.segments, t.stage, t.pass);
}

// Every task once, all passes of a micro-batch on one rank.
void check_complete(const PipelineSchedule& s, std::vector<std::string>& problems) {
  std::map<std::tuple<int, int, Pass, int>, int> rank_of_task;
  for (int r = 0; r < s.ranks_count(); ++r)
    for (const StageTask& t : s.ranks[static_cast<std::size_t>(r)]) {
      if (!sensible(s, t)) {
        problems.push_back(fmt::format("rank {} has {}, which does not exist", r, to_string(t)));
        continue;
      }
      const auto [it, fresh] = rank_of_task.emplace(std::tuple(t.stage, t.micro_batch, t.pass, t.segment), r);
      if (!fresh) problems.push_back(fmt::format("{} is on rank {} and again on rank {}", to_string(t), it->second, r));
    }
  for (int stage = 0; stage < s.stages; ++stage)
    for (int m = 0; m < s.micro_batches; ++m) {
      int rank = -1;
      for (Pass pass = Pass::forward; pass <= last_pass(s); pass = static_cast<Pass>(static_cast<int>(pass) + 1)) {
        for (int segment = 0; segment < segments_of(s.segments, stage, pass); ++segment) {
          const StageTask task{pass, stage, m, segment};
          const auto it = rank_of_task.find({stage, m, pass, segment});
          if (it == rank_of_task.end())
            problems.push_back(fmt::format("nobody does {}", to_string(task)));
          else if (rank >= 0 && it->second != rank)
            problems.push_back(
                fmt::format("{} is on rank {}, but its activations are on rank {}", to_string(task), it->second, rank));
          else
            rank = it->second;
        }
      }
    }
}

// Passes of a micro-batch follow each other; the last passes of a stage come in the order of micro-batches.
void check_order(const PipelineSchedule& s, std::vector<std::string>& problems) {
  for (int r = 0; r < s.ranks_count(); ++r) {
    std::map<std::pair<int, int>, std::pair<int, int>> done;  // by stage and micro-batch: the pass and segment it is at
    std::map<int, int> last;                                  // micro-batch, by stage
    for (const StageTask& t : s.ranks[static_cast<std::size_t>(r)]) {
      if (!sensible(s, t)) continue;
      auto& at = done[{t.stage, t.micro_batch}];
      if (at != std::pair(static_cast<int>(t.pass), t.segment))
        problems.push_back(fmt::format("rank {} would do {} before the pass that it needs", r, to_string(t)));
      at = ends_pass(s, t) ? std::pair(static_cast<int>(t.pass) + 1, 0)
                           : std::pair(static_cast<int>(t.pass), t.segment + 1);
      if (t.pass != last_pass(s) || !ends_pass(s, t)) continue;
      const auto it = last.find(t.stage);
      if (s.in_order && it != last.end() && it->second > t.micro_batch)
        problems.push_back(fmt::format("rank {} would do {} after micro-batch {}: contributions are summed in order", r,
                                       to_string(t), it->second));
      last[t.stage] = t.micro_batch;
    }
  }
}

void count_live(const PipelineSchedule& s, const ScheduleLimits& limits, ScheduleCheck& check) {
  check.live.assign(s.ranks.size(), std::vector<int>(static_cast<std::size_t>(s.stages), 0));
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    std::vector<int> alive(static_cast<std::size_t>(s.stages), 0);
    double bytes = 0, most = 0;
    for (const StageTask& t : s.ranks[r]) {
      const auto stage = static_cast<std::size_t>(t.stage);
      const double kept = stage < limits.kept_bytes.size() ? limits.kept_bytes[stage] : 0;
      if (t.pass == Pass::forward && t.segment == 0) {
        check.live[r][stage] = std::max(check.live[r][stage], ++alive[stage]);
        most = std::max(most, bytes += kept);
      } else if (t.pass == last_pass(s) && ends_pass(s, t)) {
        --alive[stage], bytes -= kept;
      }
    }
    if (most > limits.most_bytes)
      check.problems.push_back(fmt::format("rank {} would keep {} of activations at once, and has {}", r,
                                           human_bytes(most), human_bytes(limits.most_bytes)));
  }
}

}  // namespace

ScheduleCheck check_schedule(const PipelineSchedule& schedule, std::span<const StageMessage> messages,
                             const ScheduleLimits& limits) {
  ScheduleCheck check;
  check_complete(schedule, check.problems);
  check_order(schedule, check.problems);
  if (!check.problems.empty()) return check;
  const ReplayCosts costs{.stages = std::vector<StageCost>(static_cast<std::size_t>(schedule.stages))};
  check.problems = replay(schedule, messages, costs).stuck;
  count_live(schedule, limits, check);
  return check;
}

}  // namespace echelon
