#include "plan/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/schedules/schedules.h"

namespace echelon {

std::string_view name_of(Pass pass) {
  switch (pass) {
    case Pass::forward: return "forward";
    case Pass::backward: return "backward";
    case Pass::weights: return "weight gradients";
  }
  return "";
}

std::string to_string(const StageTask& task) {
  return fmt::format("{} of stage {}, micro-batch {}{}", name_of(task.pass), task.stage, task.micro_batch,
                     task.segment > 0 ? fmt::format(", segment {}", task.segment) : "");
}

const std::vector<ScheduleKind>& schedule_kinds() {
  static const std::vector<ScheduleKind> kinds{gpipe_schedule(),       one_f_one_b_schedule(),   interleaved_schedule(),
                                               zero_bubble_schedule(), bidirectional_schedule(), dualpipe_schedule(),
                                               pipedream_schedule(),   ampnet_schedule()};
  return kinds;
}

const ScheduleKind* find_schedule(std::string_view name) {
  const auto& kinds = schedule_kinds();
  const auto it = std::ranges::find(kinds, name, &ScheduleKind::name);
  return it == kinds.end() ? nullptr : &*it;
}

std::vector<std::string> pipeline_schedule_names() {
  std::vector<std::string> names;
  for (const ScheduleKind& kind : schedule_kinds()) names.push_back(kind.name);
  return names;
}

int position_of(const ScheduleKind& kind, int stage, int ranks) {
  const bool back = kind.turns_back && stage / ranks % 2 == 1;
  return back ? ranks - 1 - stage % ranks : stage % ranks;
}

int rank_of(const PipelineSchedule& schedule, int stage, int micro_batch) {
  for (int r = 0; r < schedule.ranks_count(); ++r)
    for (const StageTask& t : schedule.ranks[static_cast<std::size_t>(r)])
      if (t.stage == stage && t.micro_batch == micro_batch) return r;
  return -1;
}

}  // namespace echelon
