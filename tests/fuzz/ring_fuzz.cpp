// Any bytes of the right number are either no ring, or one that can be told of: the input is the beginning of the file.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "world/os/event_ring.h"

int fuzz_ring(const std::uint8_t* data, std::size_t size) {
  using namespace echelon;
  std::vector<std::byte> file(EventRing::file_bytes);
  std::ranges::copy(std::as_bytes(std::span(data, std::min(size, file.size()))), file.begin());
  if (const auto view = EventRing::parse(file)) {
    invariant(view->events.size() <= EventRing::most_events && view->rank < view->ranks, "a ring is of some rank");
    for (const RingView::Event& e : view->events) invariant(e.what.size() < 200, "an event is short");
  }
  return 0;
}
