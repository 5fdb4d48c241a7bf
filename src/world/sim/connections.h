#pragma once
// The connections between ranks on a wire with faults: a model of what TCP and MPI's transports do about them. A
// message travels as one frame. A frame that the fault plan drops, corrupts (the checksum tells) or cuts off is sent
// again after a timeout, which doubles each time; after `most_tries` the peer counts as lost. The receiver delivers
// frames in the order of their sequence numbers and discards repeated frames and those of an earlier epoch. So a
// program sees faults only as delays, or as a lost rank.
//
// The model is told by the fault plan whether a frame arrives, so there are no acknowledgements on the wire; an
// acknowledgement is lost with the probability of a frame, and then the frame is sent again in vain.
//
// The frames of the real TCP transport, and what its receiver does with bad ones, are tested by themselves
// (tests/world/tcp_frame_faults_test.cpp). Not thread-safe: it belongs to the simulation's thread.

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "world/sim/message.h"
#include "world/sim/network.h"
#include "world/sim/scheduler.h"
#include "world/sim/simulation.h"

namespace echelon::sim {

class Connections {
 public:
  struct Callbacks {
    std::function<void(SimMessage)> deliver;                                // at its receiver, once and in order
    std::function<bool(int rank)> crashed;                                  // whether that rank has
    std::function<void(int at, int peer, const std::string& reason)> lost;  // `at` has lost its connection to `peer`
  };
  Connections(Scheduler& scheduler, Network& network, const SimOptions& options, int ranks, SimReport& report,
              Callbacks callbacks);

  void send(SimMessage message);
  bool cut(int from, int to) const { return partition_between(from, to) >= 0; }  // by a partition, now

 private:
  struct Frame {
    int epoch = 0;
    std::uint64_t sequence = 0;
    std::shared_ptr<const SimMessage> message;
    bool corrupt = false;
  };
  struct Outgoing {  // one direction of a connection, at the sender
    std::uint64_t next_sequence = 0;
    std::uint64_t tries = 0;  // frames that were put on the wire, for the random numbers
  };
  struct Incoming {                                                    // at the receiver
    std::uint64_t expected = 0;                                        // the next sequence number to deliver
    std::map<std::uint64_t, std::shared_ptr<const SimMessage>> ahead;  // arrived too early; null: delivered (a bug)
  };

  int partition_between(int from, int to) const;  // its number in the plan; -1: none
  void transmit(const Frame& frame, int tries);
  bool put_on_wire(const Frame& frame);  // false if the sender gets no acknowledgement
  void fly(Frame frame, double late);
  void arrive(const Frame& frame);
  double timeout(const Frame& frame, int tries) const;

  Scheduler& scheduler_;
  Network& network_;
  const SimOptions& options_;
  SimReport& report_;
  const Callbacks callbacks_;
  std::vector<std::map<int, Outgoing>> outgoing_;  // of each rank, by peer
  std::vector<std::map<int, Incoming>> incoming_;
};

}  // namespace echelon::sim
