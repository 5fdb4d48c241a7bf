#pragma once
// What every world but the simulated one has in common: the clock, the disk and the threads of this machine.

#include <memory>
#include <string>
#include <utility>

#include "world/os/clock.h"
#include "world/os/disk.h"
#include "world/os/tasks.h"
#include "world/world.h"

namespace echelon {

class MachineWorld : public World {
 public:
  Clock& clock() final { return *clock_; }
  void sleep(double seconds) final { sleep_really(seconds); }
  void compute(double) final {}
  Disk& disk() final { return *disk_; }
  std::unique_ptr<Task> spawn(const std::string& name, std::function<void()> body) final {
    return spawn_thread(name, std::move(body));
  }
  std::unique_ptr<Event> make_event() final { return make_thread_event(); }

 private:
  std::unique_ptr<Clock> clock_ = make_real_clock();
  std::unique_ptr<Disk> disk_ = make_real_disk();
};

}  // namespace echelon
