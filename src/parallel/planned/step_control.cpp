#include "parallel/planned/step_control.h"

#include "world/channels.h"

namespace echelon {

namespace {

Label label_of_step(std::int64_t step) { return {.number = static_cast<std::uint32_t>(step)}; }

template <typename T>
std::span<std::byte> bytes_of_value(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

StepControl::StepControl(Group& group, int steps)
    : group_(group),
      world_(group.world()),
      steps_(static_cast<std::size_t>(steps) + 1),
      outgoing_(steps_ * static_cast<std::size_t>(world_.size())) {}

void StepControl::wait(Work& work, Rank peer) {
  WaitPolicy& policy = group_.wait_policy();
  policy.begin({}, "with the next step's permit or the last one's report");
  policy.wait(work, peer);
  policy.end();
}

StepControl::Outgoing& StepControl::free_slot(std::int64_t step, Rank to) {
  Outgoing& slot = outgoing_[static_cast<std::size_t>(step) % steps_ * static_cast<std::size_t>(world_.size()) +
                             static_cast<std::size_t>(to)];
  if (!slot.work.done()) wait(slot.work, slot.to);
  slot.to = to;
  return slot;
}

bool StepControl::begins(std::int64_t step, bool go) {
  if (world_.rank() != 0) {
    std::int64_t said = 0;
    Work work = world_.receive(0, step_permit_channel, label_of_step(step), bytes_of_value(said));
    wait(work, 0);
    return said != 0;
  }
  for (Rank r = 1; r < world_.size(); ++r) {
    Outgoing& slot = free_slot(step, r);
    slot.go = go;
    slot.work = world_.send(r, step_permit_channel, label_of_step(step), bytes_of_value(slot.go));
  }
  return go;
}

StageReport StepControl::report(std::int64_t step, StageReport sum) {
  if (world_.rank() != 0) {
    Outgoing& slot = free_slot(step, 0);
    slot.report = sum;
    slot.work = world_.send(0, step_report_channel, label_of_step(step), bytes_of_value(slot.report));
    return sum;
  }
  for (Rank r = 1; r < world_.size(); ++r) {
    StageReport theirs;
    Work work = world_.receive(r, step_report_channel, label_of_step(step), bytes_of_value(theirs));
    wait(work, r);
    sum.loss += theirs.loss, sum.correct += theirs.correct, sum.asks_to_stop |= theirs.asks_to_stop;
  }
  return sum;
}

void StepControl::drain() {
  for (Outgoing& slot : outgoing_)
    if (!slot.work.done()) wait(slot.work, slot.to);
}

}  // namespace echelon
