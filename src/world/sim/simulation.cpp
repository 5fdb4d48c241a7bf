#include "world/sim/simulation.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "world/sim/rank.h"

namespace echelon {

namespace sim {

Machinery::Machinery(const SimCluster& cluster, const SimOptions& options, const Program& program)
    : cluster_(cluster),
      options_(options),
      program_(program),
      machine_of_(cluster.machine_of_ranks()),
      scheduler_(options.stack_bytes, cluster.ranks(), options.longest_seconds),
      network_(cluster, scheduler_),
      disks_(options.disks),
      transport_(
          scheduler_, network_, options_, cluster.ranks(), report_,
          {.check_alive = [this](int r) { rank(r).check_alive(); },
           .crashed = [this](int r) { return rank(r).state() == SimRank::State::crashed; },
           .check_whole = [this](int r, const Scheduler::Describe& operation) { rank(r).check_whole(operation); },
           .lost = [this](int at, int lost, const std::string& reason) { rank(at).lose(lost, reason); }}) {
  const int ranks = cluster.ranks();
  disks_.resize(cluster.machines.size());
  for (auto& disk : disks_)
    if (!disk) disk = std::make_shared<MemoryDisk>(~std::uint64_t{0}, options.bugs);
  report_.ranks.resize(static_cast<std::size_t>(ranks));
  report_.fired = FiredFaults(options.faults);
  RankPlace place{
      .world = "sim", .rank = 0, .size = ranks, .host = machine_of_, .seed = options.seed, .threads = false};
  for (int r = 0; r < ranks; ++r) {
    place.rank = r;
    const auto machine = static_cast<std::size_t>(machine_of_[static_cast<std::size_t>(r)]);
    ranks_.push_back(std::make_unique<SimRank>(*this, place, cluster.machines[machine].flops, disks_[machine]));
  }
}

SimReport Machinery::run() {
  for (const auto& rank : ranks_) scheduler_.start(rank->rank(), "", [this, r = rank->rank()] { run_program(r); });
  scheduler_.on_hopeless = [this] {
    for (const auto& rank : ranks_) crash(rank->rank(), "would not stop waiting");
  };
  schedule_faults();
  std::vector<std::uint64_t> refused;
  for (const auto& disk : disks_) refused.push_back(disk->refused());
  scheduler_.run();
  for (const auto& look : fullness_) look();
  for (std::size_t m = 0; m < disks_.size(); ++m) report_.faults.full_disks += disks_[m]->refused() - refused[m];
  for (const auto& rank : report_.ranks) report_.messages += rank.messages_sent, report_.bytes += rank.bytes_sent;
  report_.events = scheduler_.events();
  report_.trace_hash = scheduler_.hash();
  return std::move(report_);
}

void Machinery::run_program(int r) {
  SimRank& me = rank(r);
  try {
    me.check_alive();
    program_(me);
    if (me.state() == SimRank::State::running) me.set_state(SimRank::State::ended);
  } catch (const RankCrashed&) {
  } catch (const PeerLost& lost) {
    failed(r, lost.what(), false, std::current_exception());
    tell_everybody(r, lost.rank(), fmt::format("{}, noticed by rank {}", lost.reason(), r));
  } catch (const std::exception& error) {
    failed(r, error.what(), false, std::current_exception());
    tell_everybody(r, r, error.what());
  } catch (...) {
    failed(r, "threw something that is no std::exception", false, std::current_exception());
    tell_everybody(r, r, "threw something that is no std::exception");
  }
  report_.seconds = scheduler_.now();
}

void Machinery::failed(int r, const std::string& text, bool crashed, std::exception_ptr error) {
  if (rank(r).state() != SimRank::State::running) return;  // it has said why it aborts
  rank(r).set_state(crashed ? SimRank::State::crashed : SimRank::State::failed);
  report_.failures.push_back({r, scheduler_.now(), text, crashed, std::move(error)});
  log(fmt::format("rank {} {}: {}", r, crashed ? "crashed" : "failed", text));
}

// One round of reports is enough: it reaches every rank, and a world is whole or broken.
void Machinery::tell_everybody(int teller, int lost, const std::string& reason) {
  if (std::exchange(told_, true)) return;
  for (const auto& other : ranks_) {
    const int r = other->rank();
    if (r == teller) continue;
    const double delay = transport_.cut(teller, r) ? options_.detection_seconds : network_.latency(teller, r);
    scheduler_.at(scheduler_.now() + delay, r, What::lost, [&other = *other, teller, lost, reason] {
      if (other.rank() == lost) {
        other.lose(teller, "it had lost this rank: " + reason);  // which is there after all
      } else {
        other.lose(lost, reason);
      }
    });
  }
}

double Machinery::slowness(int r) {
  double factor = 1;
  for (std::size_t i = 0; i < options_.faults.slow.size(); ++i) {
    const auto& slow = options_.faults.slow[i];
    if (slow.rank == r && scheduler_.now() >= slow.begin && scheduler_.now() < slow.end) {
      factor *= slow.factor;
      report_.fired.slow[i] = 1;
      ++report_.faults.slowed;
    }
  }
  return factor;
}

void Machinery::crash(int r, const std::string& reason) {
  if (rank(r).state() != SimRank::State::running) return;
  failed(r, reason, true, nullptr);
  scheduler_.wake_all(r);
  if (options_.bugs.silent_crash) return;
  scheduler_.at(scheduler_.now() + options_.detection_seconds, nobody, What::lost, [this, r, reason] {
    if (std::exchange(told_, true)) return;
    for (const auto& other : ranks_) other->lose(r, reason);
  });
}

void Machinery::schedule_faults() {
  for (std::size_t i = 0; i < options_.faults.crashes.size(); ++i)
    scheduler_.at(options_.faults.crashes[i].at, nobody, What::fault, [this, i] {
      const FaultPlan::Crash& fault = options_.faults.crashes[i];
      const int machine = machine_of_[static_cast<std::size_t>(fault.rank)];
      for (const auto& rank : ranks_) {
        const bool hit =
            fault.power ? machine_of_[static_cast<std::size_t>(rank->rank())] == machine : rank->rank() == fault.rank;
        if (!hit || rank->state() != SimRank::State::running) continue;
        ++report_.faults.crashes;
        report_.fired.crashes[i] = 1;
        crash(rank->rank(), fmt::format("{} at {:.6f} s", fault.power ? "lost power" : "crashed", scheduler_.now()));
      }
      if (fault.power) disks_[static_cast<std::size_t>(machine)]->lose_power();
    });
  for (std::size_t i = 0; i < options_.faults.pauses.size(); ++i)
    scheduler_.at(options_.faults.pauses[i].at, nobody, What::fault, [this, i] {
      const FaultPlan::Pause& fault = options_.faults.pauses[i];
      report_.fired.pauses[i] = rank(fault.rank).state() == SimRank::State::running;
      ++report_.faults.pauses;
      log(fmt::format("rank {} pauses for {} s", fault.rank, fault.seconds));
      scheduler_.hold(fault.rank, fault.at + fault.seconds);
    });
  for (std::size_t i = 0; i < options_.faults.full_disks.size(); ++i) {
    const FaultPlan::DiskFull& fault = options_.faults.full_disks[i];
    const auto disk = disks_[static_cast<std::size_t>(fault.machine)];
    const auto before = std::make_shared<std::uint64_t>(~std::uint64_t{0});  // writes refused before it was full
    scheduler_.at(fault.begin, nobody, What::fault, [disk, before] {
      *before = disk->refused();
      disk->set_full(true);
    });
    fullness_.push_back([this, i, disk, before] {
      if (disk->refused() > *before) report_.fired.full_disks[i] = 1;
    });
    if (fault.end < FaultPlan::forever)
      scheduler_.at(fault.end, nobody, What::fault, [disk, before, look = fullness_.back()] {
        look();
        *before = ~std::uint64_t{0};  // what is refused later is another fault's
        disk->set_full(false);
      });
  }
}

void Machinery::log(const std::string& line) const {
  if (options_.log) options_.log(fmt::format("{:.6f} s: {}", scheduler_.now(), line));
}

}  // namespace sim

void SimReport::throw_if_failed() const {
  if (failures.empty()) return;
  const SimFailure& first = failures.front();
  if (first.error) try {
      std::rethrow_exception(first.error);
    } catch (const BadInput&) {
      throw;
    } catch (...) {
    }
  throw RankFailed(first.rank, first.text);
}

SimReport run_in_simulation(const SimCluster& cluster, const SimOptions& options, const Program& program) {
  check(cluster);
  check(options.faults, cluster.ranks(), static_cast<int>(cluster.machines.size()));
  return sim::Machinery(cluster, options, program).run();
}

}  // namespace echelon
