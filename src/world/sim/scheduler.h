#pragma once
// Virtual time: events in the order of (time, number), and fibers that wait for them. Everything happens in the thread
// that calls `run`; between two events no time passes. The same inputs give the same order, always; `hash` is over
// every event, so two runs with the same hash did the same things at the same times.
//
// An event may belong to an owner (a rank). An owner that is held (a paused process) gets its events later.

#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "world/sim/fiber.h"

namespace echelon::sim {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr int nobody = -1;

// What an event is, for the hash.
enum class What : std::uint8_t { start, resume, deadline, hop, left, arrive, timer, fault, lost, deliver, end };

class Scheduler;

// A fiber of an owner and what it waits for.
class Strand : public std::enable_shared_from_this<Strand> {
 public:
  int owner() const { return owner_; }
  bool ended() const { return fiber_.ended(); }
  const std::string& name() const { return name_; }

 private:
  friend class Scheduler;
  Strand(StackPool& pool, int owner, std::string name, std::function<void()> body)
      : owner_(owner), name_(std::move(name)), fiber_(pool, std::move(body)) {}
  enum class State { ready, running, blocked };
  int owner_;
  std::string name_;
  Fiber fiber_;
  State state_ = State::ready;
  double deadline_ = never;  // of the wait under way
  double alarm_ = never;     // when it will be looked at: at its deadline, or for an earlier wait's sake before
  bool timed_out_ = false;
  const std::function<std::string()>* waits_for_ = nullptr;
  std::exception_ptr stuck_;  // thrown by the wait that can never end
};

class Scheduler {
 public:
  using Describe = std::function<std::string()>;

  // `longest` is the virtual time after which every wait throws.
  Scheduler(std::size_t stack_bytes, int owners, double longest);
  ~Scheduler();

  double now() const { return now_; }
  void at(double time, int owner, What what, std::function<void()> action);
  std::shared_ptr<Strand> start(int owner, const std::string& name, std::function<void()> body);
  Strand* current() { return current_; }
  void hold(int owner, double until);  // its events wait until then

  // By a strand. False at the deadline. Throws `Deadlock` if nothing can ever wake it.
  bool block(double deadline, const Describe& waits_for);
  // The same without throwing, for destructors.
  bool block_quietly(double deadline, const Describe& waits_for);
  void wake(Strand& strand);  // no harm if it does not wait
  void wake_all(int owner);

  void run();  // until every strand has ended
  void mix(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x9E3779B97F4A7C15u, hash_ ^= hash_ >> 29; }
  std::uint64_t hash() const { return hash_; }
  std::uint64_t events() const { return done_; }
  // Called when nobody could go on for the hundredth time: a program that waits again and again, whatever it is told.
  std::function<void()> on_hopeless = [] {};

 private:
  struct Event {
    double time;
    std::uint64_t number;
    int owner;
    What what;
    std::function<void()> action;
    bool operator<(const Event& o) const { return time != o.time ? time > o.time : number > o.number; }
  };
  void resume(Strand& strand);
  void set_alarm(Strand& strand, double time);
  void everybody_is_stuck();

  StackPool pool_;
  std::vector<Event> heap_;
  std::vector<std::shared_ptr<Strand>> strands_;  // that have not ended, in the order in which they were started
  std::vector<double> held_;
  Strand* current_ = nullptr;
  double now_ = 0, longest_;
  std::uint64_t numbers_ = 0, done_ = 0, hash_ = 0;
  std::size_t alive_ = 0;
  int stuck_ = 0;  // times that nobody could go on
};

}  // namespace echelon::sim
