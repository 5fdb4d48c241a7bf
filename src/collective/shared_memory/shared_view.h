#pragma once
// The data of all members of a group, in place, if all of it lies in shared memory. Constructing a view is collective:
// the members announce their addresses and wait at a barrier. If any member's data lies elsewhere, the view is empty on
// every member, and all use messages. Internal to the room.

#include "collective/group_state.h"

namespace echelon {

class SharedView {
 public:
  // Throws Mismatch if the members turn out to be in different collectives.
  SharedView(Group& group, TypedSpan data);
  explicit operator bool() const { return shared_; }
  TypedSpan of(int member) const;
  // Waits until all members have finished reading and writing.
  void leave() const { state_.barrier(); }

 private:
  GroupState& state_;
  TypedSpan data_;
  bool shared_ = false;
};

}  // namespace echelon
