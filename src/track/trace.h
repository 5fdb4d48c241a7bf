#pragma once
// Where the time goes, for chrome://tracing and ui.perfetto.dev: one timeline for every core of every rank, one bar for
// every piece of work. Each core adds to a timeline of its own, without locks and without allocating; a timeline that
// is full counts what it leaves out, and the file says so.
//
// `name` and `timeline` are for the time before the work starts; afterwards each timeline belongs to one thread, and
// `write` is called when no timeline is in use.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "world/os/disk.h"

namespace echelon {

class Trace {
 public:
  using Name = std::uint32_t;
  static constexpr std::size_t most_args = 2;
  struct Arg {
    Name key = 0;
    double value = 0;
  };

  class Timeline {
   public:
    // A piece of work from `begin` to `end`, both by the clock's `seconds()`.
    void add(Name name, Name category, double begin, double end, std::initializer_list<Arg> args = {});
    std::size_t size() const { return events_.size(); }
    std::int64_t dropped() const { return dropped_; }

   private:
    friend class Trace;
    struct Event {
      double begin, end;
      Name name, category;
      std::array<Arg, most_args> args;
      std::uint32_t arg_count;
    };
    int rank_ = 0, core_ = 0;
    std::string label_;
    std::vector<Event> events_;  // its capacity is all there will be
    std::int64_t dropped_ = 0;
  };

  explicit Trace(double origin, std::size_t events_per_timeline = 100'000)
      : origin_(origin), capacity_(events_per_timeline) {}

  Name name(std::string_view text);                                     // the same for the same text
  Timeline& timeline(int rank, int core, std::string_view label = "");  // the same for the same rank and core
  void write(Disk& disk, const std::string& path) const;                // replaces the file as a whole; DiskError

 private:
  const double origin_;
  const std::size_t capacity_;
  std::map<std::string, Name, std::less<>> ids_;
  std::vector<std::string> names_;
  std::map<std::pair<int, int>, std::unique_ptr<Timeline>> timelines_;
};

}  // namespace echelon
