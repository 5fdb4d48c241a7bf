#include "collective/shared_memory/shared_view.h"

namespace echelon {

SharedView::SharedView(Group& group, TypedSpan data) : state_(group.state()), data_(data) {
  if (!state_.control) return;
  ControlSegment& control = *state_.control;
  control.mine().address = state_.shared_address(data.span());
  state_.barrier();
  control.check_same_operation();
  shared_ = true;
  for (int m = 0; m < control.size(); ++m) shared_ = shared_ && control.of(m).address.block != 0;
  // No member may change its entry before all have read it; where the view is used, leave() sees to that.
  if (!shared_) state_.barrier();
}

TypedSpan SharedView::of(int member) const {
  return {state_.pointer_to(state_.control->of(member).address, member), data_.count, data_.type};
}

}  // namespace echelon
