#pragma once
// One step of one member in a collective: what it sends to whom and what it receives from whom, as ranges of elements.
// An algorithm is a function that hands the transfers of one member, in order, to a `TransferRunner`. The runner
// carries them out with messages (message_runner.h), or a test records them: a schedule can be checked without a world.
//
// Order. Sends start at once and are waited for only when their memory is about to change; receives are waited for one
// after the other. Both sides of a message carry the same step number. Empty messages are sent too: that costs little,
// keeps the counts simple, and a member that brings no data where others do is detected.

#include <cstdint>

#include "collective/topology.h"

namespace echelon {

struct Transfer {
  int to = -1;  // member number; -1: sends nothing
  Range out = {};
  int from = -1;  // -1: receives nothing
  Range in = {};
  bool reduce = false;  // what arrives is combined with what is there; otherwise it replaces it
  int step = 0;
};

class TransferRunner {
 public:
  virtual void run(const Transfer& transfer) = 0;

 protected:
  ~TransferRunner() = default;
};

}  // namespace echelon
