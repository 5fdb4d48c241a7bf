#pragma once
// Prefetching: an `Ahead` produces numbered items 0, 1, 2, ... into a ring of slots that the owner allocated, at most
// `depth` items ahead of the one that the consumer holds; `take(n)` waits for item n. The result must not depend on
// which thread produced an item, or when: `produce` is a pure function of the number.
//
// Depth 0 means no thread: `take` produces the item itself. Programs for worlds without threads use that.
//
// Errors: what `produce` throws is parked and rethrown by the `take` of that number; taking it again tries it again.
// Thread safety: one consumer. `produce` runs on up to `threads` threads at once, each for another number and slot;
// these threads receive no signals.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace echelon {

class Ahead {
 public:
  using Produce = std::function<void(std::uint64_t number, std::size_t slot)>;

  struct Options {
    std::string name;         // of the threads, as debuggers show it
    int depth = 1;            // items ahead of the consumer; 0: no thread
    int threads = 1;          // at most depth are of use
    std::uint64_t first = 0;  // production starts with this number, at once
  };

  // The slots that a ring of this depth needs: one is held by the consumer, `depth` are ahead of it.
  static std::size_t slots(int depth) { return static_cast<std::size_t>(depth) + 1; }

  Ahead(Options options, Produce produce);
  ~Ahead();  // waits for the items in production; starts no more

  // Waits for item `number` and returns its slot, which stays untouched until the next take. Numbers normally follow
  // each other; any other number is fine too, and makes production start again from there. Allocates nothing.
  std::size_t take(std::uint64_t number);

  double seconds_waited() const;  // that the consumer has spent in `take`, since construction

 private:
  class Ring;
  std::unique_ptr<Ring> ring_;
};

}  // namespace echelon
