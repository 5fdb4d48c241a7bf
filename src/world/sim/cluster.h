#pragma once
// The machines, links and switches of a simulated cluster: plain data, read from a file by recipe/cluster_file.h.
//
// The model. Ranks stand on machines; each rank has one core of the machine's speed, and its tasks share it one after
// another. Ranks of one machine exchange messages through its memory. Between machines a message passes, in this order,
//
//     NIC out  ->  [uplink of the switch  ->  downlink of the other switch]  ->  NIC in
//
// (in brackets only if they hang on different switches), or, on a torus, the wires from neighbour to neighbour, along
// one dimension after the other. Each of these is a resource of some bandwidth that all ranks behind it share: it
// serves one message after another, in the order in which they reach it (first come, first served; a message occupies
// it for bytes / bandwidth). A message's head moves on to the next resource as soon as this one begins to serve it
// (cut-through), so a lone message takes latency + bytes / bandwidth of the slowest, once, not once a hop. What is not
// modelled: packets (a small message waits behind the whole of a large one), congestion control, the processor's time
// for copying and the switches' own limits inside a rack.

#include <cstdint>
#include <string>
#include <vector>

namespace echelon {

struct SimCluster {
  struct Switch {
    std::string name;
    double uplink = 0;   // bytes a second to and from the core, each way
    double latency = 0;  // seconds to the core, one way
  };
  struct Machine {
    std::string name;
    int ranks = 1;
    double flops = 1e10;             // a second, of each rank's core
    double bandwidth = 1.25e9;       // of its NIC in bytes a second, each way, shared by its ranks
    double latency = 5e-6;           // seconds to its switch, one way
    double memory_bandwidth = 1e10;  // between ranks on it, shared
    double memory_latency = 5e-7;
    int attached_to = 0;  // the number of its switch
  };
  struct Torus {                    // in place of switches: machines on a grid that closes on itself
    std::vector<int> shape;         // machine m stands at the digits of m, the last one counting fastest; empty: none
    double bandwidth = 1.25e9;      // of the wire to each neighbour, in bytes a second, each way
    double latency = 1e-6;          // seconds to a neighbour
    std::int64_t machines() const;  // that it has room for
  };
  std::vector<Switch> switches;
  Torus torus;
  std::vector<Machine> machines;

  int ranks() const;
  std::vector<int> machine_of_ranks() const;  // ranks are numbered machine by machine

  // n machines of one rank on one switch. A message of b bytes takes latency + b / bandwidth.
  static SimCluster uniform(int n, double latency, double bandwidth, double flops = 1e10);
};

// BadInput naming all that makes no sense: no ranks, speeds that are not positive, a switch that is not there.
void check(const SimCluster& cluster);

}  // namespace echelon
