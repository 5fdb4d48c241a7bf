#pragma once
// The rows of all syncs (parallel/syncs.cpp lists them), and what several of them have in common.

#include <string>

#include "parallel/composition.h"
#include "parallel/sync.h"

namespace echelon::syncs {

SyncPart bsp();
SyncPart quorum();
SyncPart a_bsp();
SyncPart ssp();
SyncPart essp();
SyncPart delay();
SyncPart value();
SyncPart soft();
SyncPart approximate();
SyncPart async();

// Contributions are merged a round at a time.
class InRounds : public Sync {
 public:
  SyncTraits traits() const override { return {.in_rounds = true}; }
  void accepts(const Composition& composition, const CompositionFacts& facts, Problems& problems) const override;
};

// Contributions are merged as they come.
class OnArrival : public Sync {
 public:
  void accepts(const Composition& composition, const CompositionFacts& facts, Problems& problems) const override;
  std::vector<Figure> figures(const ServerCounts& counts) const override;
};

// The same, and the parameters of a step are at most so many steps old.
class Bounded : public OnArrival {
 public:
  explicit Bounded(std::int64_t staleness) : staleness_(staleness) {}
  std::optional<std::int64_t> staleness() const override { return staleness_; }
  void accepts(const Composition& composition, const CompositionFacts& facts, Problems& problems) const override;
  std::vector<Figure> figures(const ServerCounts& counts) const override;

 private:
  std::int64_t staleness_;
};
Setting staleness_setting();
std::int64_t read_staleness(OptionReader& options);

// The same, and workers do not keep pace with each other, so they may share their work.
class SharingWork : public OnArrival {
 public:
  explicit SharingWork(const WorkSharing& work) : work_(work) {}
  WorkSharing work() const override { return work_; }
  void accepts(const Composition& composition, const CompositionFacts& facts, Problems& problems) const override;

 private:
  WorkSharing work_;
};
std::vector<Setting> with_work_settings(std::vector<Setting> own);
WorkSharing read_work(OptionReader& options);

// A composition whose contributions meet at servers, each worker's at its own time.
bool at_own_pace(const Composition& composition);

}  // namespace echelon::syncs
