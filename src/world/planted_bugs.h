#pragma once
// Bugs that we plant ourselves, to prove that the tests would find them if we had made them by accident. Only tests set
// one; everywhere else the default, none, is passed on. Each is one honest mistake at one place; `grep bugs_.NAME`
// finds it.

namespace echelon {

struct PlantedBugs {
  // In the exactly-once stream (world/transport/reliable.h).
  bool skip_checksum = false;         // what was corrupted on the wire is believed
  bool accept_duplicates = false;     // a frame that comes twice is delivered twice
  bool deliver_out_of_order = false;  // what overtook is delivered before what it overtook
  bool never_retransmit = false;      // a lost frame stays lost
  bool acknowledge_gaps = false;      // acknowledged before all that came before could be delivered
  bool wrap_sequence = false;         // the number on the wire is too short
  bool ignore_epoch = false;          // frames of an earlier incarnation of the job count
  bool wrong_channel = false;         // what waited for a gap to close goes to the channel of the frame that closed it
  bool no_ack_of_duplicates = false;  // a lost acknowledgement is never repeated
  bool renumber_retransmission = false;  // sent again under a new number: applied twice
  bool resend_newest = false;            // the buffer of a frame is used again before it is acknowledged
  bool short_timeout = false;            // the first timeout already means that the peer is lost
  // In the simulated world (world/sim).
  bool silent_crash = false;  // nobody is told that a rank has gone
  bool sync_lies = false;     // a disk's sync returns before the bytes are safe
};

}  // namespace echelon
