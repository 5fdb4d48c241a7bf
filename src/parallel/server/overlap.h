#pragma once
// What a worker of parameter servers needs for exchanging beside its computation (server_overlap.cpp). A task of its
// own carries each step's messages: it pushes keys as backward completes them, and takes the answers. Belongs to the
// ServerClient, which says there who may touch what when; what goes wrong in the task is rethrown by `last.wait`.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collective/async_group.h"
#include "world/world.h"

namespace echelon::exchanges {

struct ServerOverlap {
  struct PendingBucket {  // of the gradient
    std::size_t begin = 0;
    std::vector<std::uint32_t> keys;  // that are complete with it
    std::unique_ptr<Event> ready;     // counts steps, as all events here
  };

  bool defers = false;                          // answers are waited for when forward needs them
  std::vector<PendingBucket> buckets;           // in the order in which they become complete
  std::vector<std::uint32_t> rest;              // keys of which backward says nothing
  std::unique_ptr<Event> computed;              // backward is over: weights may be written
  std::unique_ptr<Event> pushed;                // all keys: the gradient may be written
  std::vector<std::size_t> reading;             // by key: its place in the order in which forward reads them
  std::vector<std::unique_ptr<Event>> arrived;  // by key: the answer
  std::vector<std::size_t> furthest;            // of the step's answers that have come, by server
  std::uint64_t steps = 0;                      // begun
  std::atomic<bool> closing = false;            // in the middle of a step
  std::atomic<bool> failed = false;             // `last` knows why
  Pending last;                                 // the last step's messages
  std::unique_ptr<AsyncGroup> async_group;
};

}  // namespace echelon::exchanges
