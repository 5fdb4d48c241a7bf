#pragma once
// How long a collective waits, and what it says meanwhile. Every wait of a collective goes through here, so that each
// has a deadline and a name (law 6).
//
// An operation is late when it takes `factor` times as long as operations of its kind took before, and at least `floor`
// seconds. Then, at growing intervals, a notice says which rank is waited for, and what that rank is doing:
//   waiting 4.2 s for rank 3: all-reduce bucket 7; rank 3 is in backward of conv2
// Half-way to being late, a rank publishes the rank that it waits for (World::set_waiting_for). So if the rank that is
// waited for is itself waiting, the one at the end of the chain is named.
// After `limit` seconds in one wait the operation throws TooLate. The seconds waited are added up by rank, for the
// summary of a run.
//
// Not thread-safe: every group has one of its own, used by the task that uses the group. The notice is called from that
// task.

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "world/world.h"

namespace echelon {

// Said while a rank waits for a long time.
struct WaitNotice {
  std::vector<Rank> waited_for;  // empty: not known, or the notice is not about a wait
  std::string text;

  bool names(Rank rank) const { return std::find(waited_for.begin(), waited_for.end(), rank) != waited_for.end(); }
};

struct WaitOptions {
  double floor = 2.0;    // seconds: nobody is called late before
  double factor = 8.0;   // times the usual
  double limit = 900.0;  // seconds: then TooLate
  std::function<void(const WaitNotice&)> notice = {};
  std::function<void(Rank, double seconds)> waited = {};  // told of every wait: for which rank, and how long
};

class WaitPolicy {
 public:
  explicit WaitPolicy(World& world, WaitOptions options = {});

  const WaitOptions& options() const { return options_; }
  void set_options(WaitOptions options) { options_ = std::move(options); }

  // An operation begins; `name` (may be empty) is the caller's word for it, or for the peer that is waited for, and
  // must stay until `end`.
  enum class NameOf { operation, peer };
  void begin(const Label& label, std::string_view name, NameOf name_of = NameOf::operation);
  void end();  // it has succeeded: what it took until its last wait was over is the measure for later ones

  // Throws TooLate, and what the wait itself throws (PeerLost, Mismatch).
  void wait(Work& work, Rank peer);
  // For all ranks at a barrier; `latecomer` finds one that has not arrived, -1 if it cannot tell.
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
  NameOf name_of_ = NameOf::operation;
  double began_ = 0, seen_ = 0;  // when the operation began, and when we last looked at the clock
};

}  // namespace echelon
