#pragma once
// AllReduceOptions long a collective waits, and what it says meanwhile. Every wait of a collective goes through here,
// so that none lasts for ever and each has a name (law 5).
//
// An operation is late when it takes `factor` times as long as operations of its kind took before, and at least `floor`
// seconds. Then, at growing intervals, the notice says who is waited for, and what that rank is busy with:
//   waiting 4.2 s for rank 3: all-reduce bucket 7; rank 3 is in backward of conv2
// If that rank is itself waiting for another, the one at the end of the chain is named: half-way to being late, a rank
// says so in World::doing.
// After `limit` seconds in one wait the operation gives up with TooLate. It also adds up the seconds waited for each
// rank: what the summary of a run shows.
//
// Not thread-safe: every group has one of its own, used by the task that uses the group. The notice is called from that
// task.

#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "world/world.h"

namespace echelon {

struct WaitOptions {
  double floor = 2.0;    // seconds: nobody is called late before
  double factor = 8.0;   // times the usual
  double limit = 900.0;  // seconds: then TooLate
  std::function<void(const std::string&)> notice = {};
  std::function<void(Rank, double seconds)> waited = {};  // told of every wait: for whom, and how long
};

class WaitPolicy {
 public:
  explicit WaitPolicy(World& world, WaitOptions options = {});

  const WaitOptions& options() const { return options_; }
  void set_options(WaitOptions options) { options_ = std::move(options); }

  // An operation begins; `name` (may be empty) is the caller's word for it and is copied only when somebody is late.
  void begin(const Label& label, std::string_view name);
  void end();  // it went well: how long it took until the last wait was over is learned

  // Throws TooLate, and what the wait itself throws (PeerLost, Mismatch).
  void wait(Work& work, Rank peer);
  // For all at a barrier; `latecomer` finds one that has not arrived, -1 if it cannot tell.
  void wait(SharedBarrier& barrier, const std::function<Rank()>& latecomer);

  // Called now and then during a long wait; throws if the others turn out to be doing something else.
  void set_doubt(std::function<void()> doubt) { doubt_ = std::move(doubt); }

  const std::map<Rank, double>& waited() const { return waited_; }  // seconds
  double late_after(OperationKind kind) const;                      // seconds in an operation of that kind

 private:
  template <typename Try, typename Who>
  void keep_trying(const Try& try_until, const Who& who);
  std::string text(double seconds, Rank peer) const;
  Rank last_in_chain(Rank peer) const;

  World& world_;
  WaitOptions options_;
  std::array<double, 16> usual_{};  // seconds, by kind of operation
  std::function<void()> doubt_;
  std::map<Rank, double> waited_;
  Label label_;
  std::string_view name_;
  double began_ = 0, seen_ = 0;  // when the operation began, and when we last looked at the clock
};

}  // namespace echelon
