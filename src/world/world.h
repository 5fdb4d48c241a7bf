#pragma once
// What a program may ask of the world it runs in. A program is written once, as a function of its rank's `World`, and
// runs as threads of one process, as processes of one machine, on a cluster (MPI or TCP) or inside a deterministic
// simulation (world/launch.h lists the ways to start one).
//
// Messages. Between two ranks there are any number of channels; on a channel messages arrive in the order in which they
// were sent. Both sides say what the message is (`Label`) and how long: if the two do not agree, the receiver's wait
// throws `Mismatch` with both descriptions. `send` and `receive` return at once; the memory named there must not be
// changed (send) or read (receive) until the `Work` is done.
//
// Failure. As soon as one rank is lost, every wait of every other rank throws `PeerLost` naming it (world/failure.h): a
// job goes on with all its ranks or not at all. A wait always has a deadline.
//
// Threads. A `World` may be used by all tasks of its rank at once; a channel by one sender and one receiver task.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "world/failure.h"
#include "world/hosts.h"
#include "world/label.h"
#include "world/os/clock.h"
#include "world/os/disk.h"
#include "world/rank_status.h"
#include "world/shared_memory.h"
#include "world/work.h"

namespace echelon {

using Channel = std::uint32_t;

struct RankPlace {    // a rank's place in its world; the same on all ranks but for `rank`
  std::string world;  // "alone", "threads", "processes", "mpi", "tcp", "sim"
  Rank rank = 0;
  int size = 1;
  Hosts host;              // of every rank: ranks with the same number share a machine
  std::uint64_t seed = 0;  // of the job's random streams
  bool threads = true;     // whether tasks are threads of the machine
};

struct TrafficCount {
  std::uint64_t messages = 0, bytes = 0;
};

// Whether other ranks live in the same process.
inline bool shares_process(const RankPlace& place) { return place.world == "threads" || place.world == "sim"; }

// Something that the tasks of one rank wait for: a counter that only grows.
class Event {
 public:
  virtual ~Event() = default;
  virtual void notify() = 0;
  virtual std::uint64_t count() = 0;
  // True as soon as the count is at least `count`; false at the deadline (of the world's clock).
  virtual bool wait(std::uint64_t count, double deadline) = 0;
};

// A second thread of execution within a rank. The destructor waits for its end; `join` also rethrows what it threw.
class Task {
 public:
  virtual ~Task() = default;
  virtual void join() = 0;
};

// Is given a message in pieces, in order, wherever the bytes lie: in the sender's own memory if this rank can see that.
// Called by the world before the wait returns, by one thread at a time. Must outlive the Work.
struct Sink {
  void* self = nullptr;
  void (*take)(void* self, std::size_t offset, std::span<const std::byte> piece) = nullptr;
};

// For a task that waits for whichever of many operations finishes first. One task uses it; it outlives the operations.
class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  virtual void watch(const Work& work, std::size_t number) = 0;  // `next` returns the number once, when it is finished
  // The number of a Work that is finished, in the order in which they finished; false at the deadline. Throws PeerLost.
  virtual bool next(std::size_t& number, double deadline) = 0;
};

class World {
 public:
  virtual ~World() = default;

  virtual const RankPlace& place() const = 0;
  Rank rank() const { return place().rank; }
  int size() const { return place().size; }

  virtual Clock& clock() = 0;
  double now() { return clock().seconds(); }
  virtual void sleep(double seconds) = 0;
  // Says that this rank does that much arithmetic. Takes time only in a simulated world.
  virtual void compute(double flops) = 0;
  virtual Disk& disk() = 0;
  // The rank's own stream of random numbers for one purpose.
  Stream random(const char* purpose, std::uint32_t step = 0) const {
    return Stream({place().seed, step, static_cast<std::uint32_t>(rank()), stream_layer(purpose)});
  }

  virtual std::unique_ptr<Task> spawn(const std::string& name, std::function<void()> body) = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  // Null in worlds where a task for each operation is cheap enough.
  virtual std::unique_ptr<CompletionQueue> make_completion_queue() { return nullptr; }

  virtual Work send(Rank to, Channel channel, Label label, std::span<const std::byte> bytes) = 0;
  virtual Work receive(Rank from, Channel channel, Label label, std::span<std::byte> into) = 0;
  virtual Work receive(Rank from, Channel channel, Label label, std::size_t bytes, Sink sink) = 0;

  // What this rank has sent to others so far; nothing where the world does not count it (world/wrappers/metered.h).
  virtual std::optional<TrafficCount> sent() const { return std::nullopt; }

  // Memory that all ranks see, or null if they share none.
  virtual SharedMemory* shared_memory() = 0;

  // The world's own all-reduce over all its ranks, in place: MPI's; false where there is none, or not for these
  // numbers. `type` as in Label; `op`: 0 sum, 1 min, 2 max. Every rank calls it, in the same order; one call at a time.
  virtual bool native_all_reduce(void* /*data*/, std::size_t /*count*/, int /*type*/, int /*op*/) { return false; }

  // This rank's status, for others to read while they wait for it. Both are cheap and allocate nothing.
  virtual void set_status(std::string_view activity) = 0;  // "backward of conv2"; at most 63 bytes are kept
  virtual void set_waiting_for(Rank rank) = 0;             // the rank that keeps this one waiting; -1: none
  // What is known here of a rank's status. Across machines that may be what it was when the rank last sent something.
  virtual RankStatus status_of(Rank rank) = 0;

  // Ends the job: all others' waits throw PeerLost with this rank and the reason. A rank whose program throws does this
  // by itself; to tell the cause before anything is torn down, it is called earlier.
  virtual void abort(std::string_view reason, FailureKind kind) = 0;
  void abort(std::string_view reason) { abort(reason, FailureKind::failure); }
};

}  // namespace echelon
