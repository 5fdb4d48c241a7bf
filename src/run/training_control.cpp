// What others ask of a run that goes on (track/control.h). A request ends the engine's run at a step on which all ranks
// agree, as a signal does; rank 0 then tells the others what it is, and all do it together.

#include <algorithm>

#include "run/training_memory.h"
#include "world/os/tasks.h"

namespace echelon {

namespace {
constexpr double between_looks_while_paused = 0.2;
}

struct Training::Order {
  enum Kind : std::int64_t { none, pause, resume, checkpoint, stop, signal, rate, resize } kind = none;
  double value = 1;
};

// What rank 0 has been asked, or `signal` if some rank has received a signal; the same on all ranks. Collective.
Training::Order Training::next_order(const StopFlag& stop) {
  Order order;
  if (control_)
    if (const auto request = control_->take()) {
      const std::string& a = request->action;
      order.kind = a == "pause"        ? Order::pause
                   : a == "resume"     ? Order::resume
                   : a == "checkpoint" ? Order::checkpoint
                   : a == "stop"       ? Order::stop
                   : a == "resize"     ? Order::resize
                                       : Order::rate;
      order.value = request->value;
      control_->journal(next_, *request);
    }
  const std::int64_t signalled = stop.load(std::memory_order_relaxed) ? 1 : 0;
  if (std::ranges::max(team_.all_gather_struct(signalled)) > 0) return {.kind = Order::signal};
  if (team_.world().size() > 1) team_.broadcast(std::as_writable_bytes(std::span(&order, 1)));
  return order;
}

void Training::obey(const StopFlag& stop) {
  const auto note = [&](const std::string& text) { tell([&](RunListener& l) { l.on_note(text); }); };
  bool paused = false;
  do {
    const Order order = next_order(stop);
    switch (order.kind) {
      case Order::none:
      case Order::resize: break;
      case Order::pause:
        paused = true;
        note(fmt::format("paused after step {}, as asked; `resume` goes on", next_));
        break;
      case Order::resume:
        if (paused) note("going on, as asked");
        paused = false;
        break;
      case Order::checkpoint:
        save(Checkpointer::IfBusy::wait);
        note(fmt::format("saved step {}, as asked", next_));
        break;
      case Order::stop:
      case Order::signal:
        memory_->stopped_by = order.kind == Order::stop ? "request" : "signal";
        stop_agreed_ = true;
        return;
      case Order::rate:
        memory_->rate_factor = order.value;
        note(
            fmt::format("from step {} on the rate is {} times the schedule's, as asked: journal.jsonl has it, and the "
                        "recipe alone does not give these weights any more",
                        next_ + 1, order.value));
        break;
    }
    if (order.kind == Order::resize && keeper_) {
      keep();
      if (team_.world().rank() == 0) keeper_->ask_for_workers(static_cast<int>(order.value));
      memory_->stopped_by = "resize";
      return;
    }
    if (order.kind == Order::resize)
      note("asked for another number of workers: only a run that was started with --elastic can change it");
    if (paused) sleep_really(between_looks_while_paused);
  } while (paused);
  stop_agreed_ = false;
}

}  // namespace echelon
