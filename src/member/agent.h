#pragma once
// One node's part in the membership of a job (member/membership.h): keeps the node's lease, tells the others when its
// ranks have stopped, evicts nodes that are gone, forms the next generation when it may, and says what the node's
// launcher is to do. It does nothing by itself: the launcher calls tick() a few times a second.
//
// Safety rests on two rules. A generation forms only when nobody is in the one before. And the ranks of a node do no
// step after valid_until(), whatever has become of their launcher: well before its lease can have run out in the
// store. Clocks need not agree, but none may run half as fast again as another.

#include <functional>
#include <optional>
#include <string>

#include "member/membership.h"
#include "member/store.h"

namespace echelon {

struct AgentOptions {
  std::string prefix;                                  // of the job's keys: "/echelon/demo/"
  std::string name;                                    // of the node, for people and for its keys
  int least = 1, most = 1;                             // nodes
  std::function<int(std::int64_t step)> most_at = {};  // of a generation that begins after that step; empty: `most`
  bool transient = false;                              // this node may be taken away
  double lease_seconds = 5;                            // after which a silent node is evicted
  double last_call_seconds = 3;   // for more nodes to come before the first generation, once the least are there
  double suspect_seconds = 0.75;  // for the last node of a generation to be ready, once the others are
  std::function<std::string()> fresh = {};  // 64 digits that nobody can guess, another one each time
  MemberBugs bugs = {};
};

// What the launcher knows of its own ranks.
struct NodeState {
  bool running = false;                     // its ranks do steps, or may
  std::int64_t generation = 0;              // the last one that it was in
  std::int64_t step = -1;                   // of the state that it holds; -1: none
  int workers = 0;                          // that had written that state
  int changes = 0;                          // of the training that had been made then
  bool leaving = false;                     // it wants to go
  std::optional<std::string> outcome = {};  // its ranks have ended for good: empty, or what failed
  tcp::NodeOffer offer = {};                // for the next generation
};

struct NodeOrder {
  enum Act {
    wait,         // nothing to do now
    start,        // the ranks, as `view` says
    stop_softly,  // the ranks, after a step
    stop_now,     // the ranks, whatever they do
    end           // the node has left, or the job is over: `why` is its outcome
  } act = wait;
  Membership view = {};
  std::string why = {};
};

class Agent {
 public:
  Agent(Store& store, AgentOptions options) : store_(store), options_(std::move(options)) {}

  // `now` in seconds of any steady clock. Throws nothing: a store that does not answer is a reason to wait, or to stop.
  NodeOrder tick(double now, const NodeState& state);
  const std::string& id() const { return id_; }            // of this life of the node; empty before the first lease
  const std::string& trouble() const { return trouble_; }  // why the store was not reached the last time; or empty
  double valid_until() const;  // the time after which the ranks must do no step, whatever the launcher does
  void resign();               // gives back the lease; the others need not wait until it runs out. Never throws

 private:
  bool keep_lease(double now, const NodeState& state);
  NodeOrder decide(double now, const NodeState& state);
  NodeOrder decide_running(Membership& m, std::uint64_t revision, const NodeState& state);
  NodeOrder decide_idle(double now, Membership& m, std::uint64_t revision, const NodeState& state);
  bool write(const Membership& m, std::uint64_t revision);
  bool evict_lost(Membership& m);
  bool evict_late(double now, Membership& m, const NodeState& state);
  bool called_long_enough(double now, const Membership& m);

  Store& store_;
  const AgentOptions options_;
  std::string id_, trouble_;
  std::optional<Store::Lease> lease_;
  double renewed_ = 0;  // when the last renewal that succeeded was sent
  bool joined_ = false;
  std::int64_t joined_step_ = -1;  // for a planted bug
  double others_ready_ = -1;       // since when all but some nodes of the generation are ready
  double enough_ = -1;             // since when enough nodes are there for the first generation
};

}  // namespace echelon
