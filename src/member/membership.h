#pragma once
// Who is in a job whose nodes come and go: one document, changed by compare-and-swap on a store (member/store.h).
//
// A *generation* is a set of nodes that train together; its ranks do every step together or not at all. A node is
// *ready* for the generation that follows, or *in* the current one. The next generation forms once no node is in the
// current one any more: each has stopped its ranks and is ready, has left, or was evicted. So two generations never
// do steps at the same time, whoever believes what.
//
// All functions are pure: they look at a document and change it. member/agent.h decides when.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "member/planted_bugs.h"
#include "world/transport/tcp/job_table.h"

namespace echelon {

struct MemberNode {
  std::string id;               // of this life of the node: a node that comes back has another one
  std::int64_t generation = 0;  // that it is in, or ready for
  std::int64_t step = -1;       // of the training's state that it holds; -1: none
  int workers = 0;              // that had written that state
  int changes = 0;              // of the training that had been made then (stages)
  bool leaving = false;         // it goes as soon as a step is done
  bool transient = false;       // it may be taken away: reliable ones have the first ranks, and so the servers
  tcp::NodeOffer offer = {};

  friend bool operator==(const MemberNode&, const MemberNode&) = default;
};

struct Membership {
  std::int64_t generation = 0;  // 0: none has formed yet
  std::int64_t step = -1;       // the newest that a generation has begun with
  int size = 0;                 // nodes with which the current generation formed
  int least = 1, most = 1;      // nodes
  bool over = false;
  std::string outcome = {};            // why it is over: empty if it ended as it should, else what failed
  std::string session = {};            // 64 digits, fresh for each generation (tcp::JobTable)
  std::vector<MemberNode> nodes = {};  // those of the current generation in the order of their ranks, then the others

  const MemberNode* find(std::string_view id) const;
  bool has(const MemberNode& node) const { return node.generation == generation; }  // in the current generation
  bool waits(const MemberNode& node) const { return node.generation == generation + 1; }
  bool whole() const { return running() == size; }  // nobody of the current generation has stopped
  int running() const;                              // nodes in the current generation
  int waiting() const;                              // nodes that are ready for the next one

  friend bool operator==(const Membership&, const Membership&) = default;
};

// The node is ready for the next generation; it is added if it is not there.
void make_ready(Membership& m, const MemberNode& node);
void remove(Membership& m, std::string_view id);
bool may_form(const Membership& m, const MemberBugs& bugs = {});  // enough are ready, and nobody is in a generation
// The next generation, of the nodes that are ready, at most `most`; those with the newest state come first, and of
// these the reliable ones.
void form(Membership& m, std::string session, const MemberBugs& bugs = {});
void end(Membership& m, std::string outcome);
// Whether the current generation is to stop after a step: somebody waits for whom there is room, or somebody leaves.
bool wants_change(const Membership& m);

// The table of the current generation for one of its nodes.
tcp::JobTable table_for(const Membership& m, std::string_view id);

std::string write_membership(const Membership& m);
Membership read_membership(std::string_view text);  // BadInput if it is none

}  // namespace echelon
