#pragma once
// Records in a rank's ring of events what a run tells its listeners: steps, saves, where the time goes.

#include "parallel/engine.h"
#include "run/events.h"
#include "world/os/event_ring.h"

namespace echelon::cli {

class RingListener : public RunListener {
 public:
  RingListener(EventRing& ring, Engine& engine) : ring_(ring), engine_(engine) {}

  void on_step(const StepEvent& event) override {
    const RankTimes times = engine_.times();
    double waited = 0;
    for (const double seconds : times.waiting_for) waited += seconds;
    ring_.end_step(event.step, {input_, times.compute, times.exchange, waited});
  }
  void on_span(const Span& span) override {
    if (std::string_view(span.name) == "wait for input") input_ += span.end - span.begin;
  }
  void on_save_begins() override { ring_.set_saving(true); }
  void on_save(const SaveResult& result) override {
    if (!result.skipped) ring_.set_saving(false);
  }

 private:
  EventRing& ring_;
  Engine& engine_;
  double input_ = 0;  // seconds
};

}  // namespace echelon::cli
