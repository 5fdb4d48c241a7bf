// What others ask of a run that goes on (track/control.h). A request ends the engine's run at a step on which all ranks
// agree, as a signal does; rank 0 then tells the others what it is, and all do it together.

#include <algorithm>

#include "run/health/diagnosis.h"
#include "run/training/loop_state.h"
#include "world/os/tasks.h"

namespace echelon {

namespace {
constexpr double between_looks_while_paused = 0.2;
}

struct Training::Instruction {
  enum Kind : std::int64_t { none, pause, resume, checkpoint, stop, signal, rate, resize, change } kind = none;
  double value = 1;

  static Instruction of(const ControlRequest& request) {
    const std::string& a = request.action;
    return {.kind = a == "pause"        ? pause
                    : a == "resume"     ? resume
                    : a == "checkpoint" ? checkpoint
                    : a == "stop"       ? stop
                    : a == "resize"     ? resize
                    : a == "switch"     ? change
                                        : rate,
            .value = request.value};
  }
};

bool Training::replay_due() const {
  const auto next = static_cast<std::size_t>(loop_->replayed);
  return next < replayed_.size() && replayed_[next].step == next_;
}

// What rank 0 has been asked, or what another run was asked after this step, or `signal` if some rank has received a
// signal; the same on all ranks. Collective.
Training::Instruction Training::next_instruction(const StopFlag& stop) {
  Instruction instruction;
  std::optional<ControlRequest> request;
  while (static_cast<std::size_t>(loop_->replayed) < replayed_.size() &&
         replayed_[static_cast<std::size_t>(loop_->replayed)].step < next_)
    ++loop_->replayed;
  if (replay_due())
    request = replayed_[static_cast<std::size_t>(loop_->replayed++)].request;
  else if (control_)
    request = control_->take();
  if (request) {
    instruction = Instruction::of(*request);
    if (control_) control_->journal(next_, *request);
    if (control_ && keeper_ && instruction.kind == Instruction::change) keeper_->set_wish(to_json(*request).dump());
  }
  struct Wishes {
    std::int32_t signalled, change;
  };
  const Wishes mine{stop.load(std::memory_order_relaxed), keeper_ && keeper_->change_wanted()};
  const std::vector<Wishes> all = team_.all_gather_struct(mine);
  if (std::ranges::any_of(all, [](const Wishes& w) { return w.signalled != 0; })) return {.kind = Instruction::signal};
  if (team_.world().size() > 1) team_.broadcast(std::as_writable_bytes(std::span(&instruction, 1)));
  if (instruction.kind == Instruction::none && std::ranges::any_of(all, [](const Wishes& w) { return w.change != 0; }))
    return {.kind = Instruction::change};
  return instruction;
}

void Training::obey(const StopFlag& stop) {
  const auto note = [&](const std::string& text) { tell([&](RunListener& l) { l.on_note(text); }); };
  bool paused = false;
  do {
    const Instruction instruction = next_instruction(stop);
    switch (instruction.kind) {
      case Instruction::none:
      case Instruction::change:
      case Instruction::resize: break;
      case Instruction::pause:
        paused = true;
        team_.world().set_status(calm_activities[1]);
        note(fmt::format("paused after step {}, as asked; `resume` goes on", next_));
        break;
      case Instruction::resume:
        if (paused) note("going on, as asked");
        paused = false;
        break;
      case Instruction::checkpoint:
        save(Checkpointer::IfBusy::wait);
        note(fmt::format("saved step {}, as asked", next_));
        break;
      case Instruction::stop:
      case Instruction::signal:
        loop_->stopped_by = instruction.kind == Instruction::stop ? "request" : "signal";
        stop_agreed_ = true;
        return;
      case Instruction::rate:
        loop_->rate_factor = instruction.value;
        note(
            fmt::format("from step {} on the rate is {} times the schedule's, as asked: journal.jsonl has it, and the "
                        "recipe alone does not give these weights any more",
                        next_ + 1, instruction.value));
        break;
    }
    const bool changes = instruction.kind == Instruction::resize || instruction.kind == Instruction::change;
    if (changes && keeper_) {
      keep();
      keeper_->ask_for_workers(instruction.kind == Instruction::resize ? static_cast<int>(instruction.value)
                                                                       : KeptState::same_workers);
      loop_->stopped_by = "resize";
      return;
    }
    if (changes)
      note("asked for other workers or another system: only a run that was started with --elastic can change them");
    if (paused) sleep_really(between_looks_while_paused);
  } while (paused || replay_due());
  stop_agreed_ = false;
}

}  // namespace echelon
