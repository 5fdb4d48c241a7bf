#pragma once
// A sum over all workers after which everybody concludes alike, in portions that leave while backward still runs: what
// exchanges in lock-step have in common. The portions are those in which the gradient becomes complete (as the order
// says), or one for all. A task of its own (collective/lane.h) sums them one after the other, each as soon as it is
// there; how a portion is summed is the exchange's.
//
// One thread drives it. Make it the last member of its exchange: its task ends before what `sum` uses goes away.

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collective/lane.h"
#include "parallel/exchange.h"

namespace echelon::exchanges {

class Portions {
 public:
  // Leaves the mean over all workers in `out`, which is the portion's; runs in the task.
  using Sum = std::function<void(Group& group, std::size_t portion, std::span<float> out)>;

  // Collective. Everything outlives it.
  Portions(const ExchangeParts& parts, WorkerSide& worker, Sum sum);
  // In the middle of a step: portions that have not become ready are not summed, and the lane tells the others.
  ~Portions();

  std::size_t count() const { return portions_.size(); }
  Range range(std::size_t portion) const { return portions_[portion]->range; }
  std::int64_t rounds() const { return rounds_; }  // begun

  void begin_step();                        // before backward: portions may become ready from now on
  void conclude(const StepMoment& moment);  // after it: waits for all sums and applies them; rethrows what went wrong
  void read_model(std::span<float> out) const;
  std::vector<StateSpan> state();

 private:
  struct Portion {
    Range range;
    std::unique_ptr<SharedSide> shared;  // null if the mean is the answer
    std::unique_ptr<Event> ready;
    std::uint64_t times = 0;  // that it was started
    Pending pending;
  };
  void add(Range range);
  void start();
  std::span<float> numbers_of(const Portion& p) { return sum_.as<float>().subspan(p.range.begin, p.range.count()); }

  const ExchangeParts& parts_;
  WorkerSide& worker_;
  Sum add_up_;
  Buffer sum_;
  bool overlaps_ = false;  // else there is one portion, and it starts after backward
  std::vector<std::unique_ptr<Portion>> portions_;
  std::int64_t rounds_ = 0;
  std::atomic<bool> closing_ = false;  // no portion becomes ready any more
  Lane lane_;                          // last
};

}  // namespace echelon::exchanges
