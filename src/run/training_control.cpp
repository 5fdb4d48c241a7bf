// What others ask of a run that goes on (track/control.h). A request ends the engine's run at a step on which all ranks
// agree, as a signal does; rank 0 then tells the others what it is, and all do it together.

#include <algorithm>

#include "run/loop_state.h"
#include "world/os/tasks.h"

namespace echelon {

namespace {
constexpr double between_looks_while_paused = 0.2;
}

struct Training::Instruction {
  enum Kind : std::int64_t { none, pause, resume, checkpoint, stop, signal, rate, resize } kind = none;
  double value = 1;
};

// What rank 0 has been asked, or `signal` if some rank has received a signal; the same on all ranks. Collective.
Training::Instruction Training::next_instruction(const StopFlag& stop) {
  Instruction instruction;
  if (control_)
    if (const auto request = control_->take()) {
      const std::string& a = request->action;
      instruction.kind = a == "pause"        ? Instruction::pause
                         : a == "resume"     ? Instruction::resume
                         : a == "checkpoint" ? Instruction::checkpoint
                         : a == "stop"       ? Instruction::stop
                         : a == "resize"     ? Instruction::resize
                                             : Instruction::rate;
      instruction.value = request->value;
      control_->journal(next_, *request);
    }
  const std::int64_t signalled = stop.load(std::memory_order_relaxed) ? 1 : 0;
  if (std::ranges::max(team_.all_gather_struct(signalled)) > 0) return {.kind = Instruction::signal};
  if (team_.world().size() > 1) team_.broadcast(std::as_writable_bytes(std::span(&instruction, 1)));
  return instruction;
}

void Training::obey(const StopFlag& stop) {
  const auto note = [&](const std::string& text) { tell([&](RunListener& l) { l.on_note(text); }); };
  bool paused = false;
  do {
    const Instruction instruction = next_instruction(stop);
    switch (instruction.kind) {
      case Instruction::none:
      case Instruction::resize: break;
      case Instruction::pause:
        paused = true;
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
    if (instruction.kind == Instruction::resize && keeper_) {
      keep();
      if (team_.world().rank() == 0) keeper_->ask_for_workers(static_cast<int>(instruction.value));
      loop_->stopped_by = "resize";
      return;
    }
    if (instruction.kind == Instruction::resize)
      note("asked for another number of workers: only a run that was started with --elastic can change it");
    if (paused) sleep_really(between_looks_while_paused);
  } while (paused);
  stop_agreed_ = false;
}

}  // namespace echelon
