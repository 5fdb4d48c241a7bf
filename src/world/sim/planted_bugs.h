#pragma once
// Bugs that tests plant in the simulated world, to prove that the tests of the programs that run in it would notice
// them. Everywhere else none is set. `grep bugs.NAME` finds the one place of each.

namespace echelon {

struct PlantedBugs {
  // Of the connections between ranks (world/sim/connections.h).
  bool skip_checksum = false;         // a corrupted frame is delivered
  bool accept_duplicates = false;     // a frame that arrives twice is delivered twice
  bool deliver_out_of_order = false;  // a frame that overtook another is delivered first
  bool never_retransmit = false;      // a lost frame stays lost
  bool ignore_epoch = false;          // a frame of an earlier incarnation of the job is delivered
  bool short_timeout = false;         // the first timeout already means that the peer is lost
  // Of the ranks and their disks.
  bool silent_crash = false;  // the other ranks are not told that a rank has crashed
  bool sync_lies = false;     // a disk's sync returns before the bytes are safe
};

}  // namespace echelon
