#pragma once
// One step of one member in a collective: what it sends to whom and what it receives from whom, as ranges of elements.
// An algorithm is a function that tells a `Mover` the moves of one member in order. The mover carries them out
// (run_moves.h), or a test writes them down: who talks to whom needs no world.
//
// Order. Sends go out at once and are waited for only when their memory is about to change; receives are waited for one
// after the other. Both halves of a message carry the same step number. Empty messages are sent too: that costs little,
// keeps the counts simple, and a rank that brought no numbers where others did is found out.

#include <cstdint>

#include "collective/topology.h"

namespace echelon {

struct Move {
  int to = -1;  // member number; -1: sends nothing
  Range out = {};
  int from = -1;
  Range in = {};
  bool reduce = false;  // what arrives is combined with what is there, else it takes its place
  int step = 0;
};

class Mover {
 public:
  virtual void move(const Move& move) = 0;

 protected:
  ~Mover() = default;
};

}  // namespace echelon
