#pragma once
// A real disk for a program in a simulated world, on which there is room only while the simulated machine's own disk
// has some: its files are real ones, and the fault plan's full disks happen to it. Belongs to the simulation's thread.

#include <memory>

#include "world/os/disk.h"

namespace echelon {

// Both must outlive the result.
std::unique_ptr<Disk> make_disk_with_room_of(Disk& simulated, Disk& real);

}  // namespace echelon
