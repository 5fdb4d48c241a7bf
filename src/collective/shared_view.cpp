#include "collective/shared_view.h"

namespace echelon {

SharedView::SharedView(Group& group, TypedSpan data) : state_(group.state()), data_(data) {
  if (!state_.meeting) return;
  Meeting& meeting = *state_.meeting;
  meeting.mine().place = state_.find(data.span());
  meeting.meet(state_.wait_policy);
  meeting.compare();
  shared_ = true;
  for (int m = 0; m < meeting.size(); ++m) shared_ = shared_ && meeting.of(m).place.block != 0;
  // Nobody may change its slot before all have read it; where the view is used, leave() sees to that.
  if (!shared_) meeting.meet(state_.wait_policy);
}

TypedSpan SharedView::of(int member) const {
  return {state_.see(state_.meeting->of(member).place, member), data_.count, data_.type};
}

}  // namespace echelon
