#pragma once
// The numbers of all members of a group, where they lie in memory that all see. Making one is collective: the members
// say where theirs are and meet. If any of them lie elsewhere the view is empty on every member, and all go the way of
// messages. Internal to the room.

#include "collective/group_state.h"

namespace echelon {

class SharedView {
 public:
  // Throws Mismatch if the members turn out to be in different collectives.
  SharedView(Group& group, TypedSpan data);
  explicit operator bool() const { return shared_; }
  TypedSpan of(int member) const;
  // All have finished reading and writing.
  void leave() const { state_.meeting->meet(state_.wait_policy); }

 private:
  GroupState& state_;
  TypedSpan data_;
  bool shared_ = false;
};

}  // namespace echelon
