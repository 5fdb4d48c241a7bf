#include "world/sim/faults.h"

#include <fmt/ranges.h>

#include "base/error.h"

namespace echelon {

namespace {

std::string in_words(const FaultPlan::Crash& c) {
  return fmt::format("crash rank {} at {} s{}", c.rank, c.at, c.power ? " by loss of power" : "");
}
std::string in_words(const FaultPlan::Pause& c) {
  return fmt::format("pause rank {} at {} s for {} s", c.rank, c.at, c.seconds);
}
std::string in_words(const FaultPlan::Slow& c) {
  return fmt::format("rank {} slower by {} from {} s to {} s", c.rank, c.factor, c.begin, c.end);
}
std::string in_words(const FaultPlan::Partition& c) {
  return fmt::format("partition {}{}{} from {} s to {} s", c.one, c.one_way ? " -> " : " | ", c.other, c.begin, c.end);
}
std::string in_words(const FaultPlan::DiskFull& c) {
  return fmt::format("disk of machine {} full from {} s to {} s", c.machine, c.begin, c.end);
}

}  // namespace

FiredFaults::FiredFaults(const FaultPlan& plan)
    : crashes(plan.crashes.size()),
      pauses(plan.pauses.size()),
      slow(plan.slow.size()),
      partitions(plan.partitions.size()),
      full_disks(plan.full_disks.size()) {}

FaultAccount account_for(const FaultPlan& plan, const FiredFaults& fired) {
  FaultAccount account;
  const auto sort_out = [&](const auto& planned, const std::vector<char>& happened) {
    for (std::size_t i = 0; i < planned.size(); ++i)
      (happened[i] ? account.fired : account.unfired).push_back(in_words(planned[i]));
  };
  sort_out(plan.crashes, fired.crashes);
  sort_out(plan.pauses, fired.pauses);
  sort_out(plan.slow, fired.slow);
  sort_out(plan.partitions, fired.partitions);
  sort_out(plan.full_disks, fired.full_disks);
  return account;
}

std::string to_text(const FaultPlan& p) {
  std::string text;
  const auto line = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    text += fmt::format(format, std::forward<Args>(args)...) + "\n";
  };
  const std::pair<const char*, double> chances[] = {{"drop", p.drop},       {"duplicate", p.duplicate},
                                                    {"reorder", p.reorder}, {"delay", p.delay},
                                                    {"corrupt", p.corrupt}, {"stale", p.stale}};
  for (const auto& [name, chance] : chances)
    if (chance > 0) line("{} = {}", name, chance);
  for (const auto& c : p.crashes) line("{}", in_words(c));
  for (const auto& c : p.pauses) line("{}", in_words(c));
  for (const auto& c : p.slow) line("{}", in_words(c));
  for (const auto& c : p.partitions) line("{}", in_words(c));
  for (const auto& c : p.full_disks) line("{}", in_words(c));
  return text.empty() ? "no faults\n" : text;
}

void check(const FaultPlan& p, int ranks, int machines) {
  std::string problems;
  const auto need = [&](bool good, const std::string& text) {
    if (!good) problems += "\n  " + text;
  };
  for (const double chance : {p.drop, p.duplicate, p.reorder, p.delay, p.corrupt, p.stale})
    need(chance >= 0 && chance <= 1, fmt::format("{} is no probability", chance));
  const auto known = [&](int rank) {
    need(rank >= 0 && rank < ranks, fmt::format("there is no rank {}: ranks are 0 to {}", rank, ranks - 1));
  };
  for (const auto& c : p.crashes) known(c.rank);
  for (const auto& c : p.pauses) known(c.rank);
  for (const auto& c : p.slow) {
    known(c.rank);
    need(c.factor > 0, fmt::format("rank {} cannot be slower by {}", c.rank, c.factor));
  }
  for (const auto& c : p.partitions) {
    for (const int rank : c.one) known(rank);
    for (const int rank : c.other) known(rank);
  }
  for (const auto& c : p.full_disks)
    need(c.machine >= 0 && c.machine < machines, fmt::format("there is no machine {}, of {}", c.machine, machines));
  if (!problems.empty()) bad_input("these faults make no sense:{}", problems);
}

}  // namespace echelon
