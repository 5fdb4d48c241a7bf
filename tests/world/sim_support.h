#pragma once
// A little program for the tests of the simulated world: the sum over all ranks, up and down a binomial tree.

#include <cstddef>
#include <span>

#include "world/sim/scheduler.h"
#include "world/world.h"

namespace echelon::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

template <typename T>
std::span<const std::byte> bytes_of(const T& container) {
  return std::as_bytes(std::span(container));
}

inline double tree_all_reduce(World& world, double value, int number = 0, double timeout = sim::never,
                              double flops = 0) {
  const int me = world.rank(), n = world.size();
  const Channel channel = static_cast<Channel>(number % 3);
  const Label up{.kind = OperationKind::reduce, .type = 2, .step = 0, .number = static_cast<std::uint32_t>(number)};
  Label down = up;
  down.step = 1;
  const auto wait = [&](Work work) {
    if (!work.wait(world.now() + timeout)) throw TooLate("the all-reduce took too long");
  };
  const auto view = [](double& x) { return std::as_writable_bytes(std::span(&x, 1)); };
  if (flops > 0) world.compute(flops);
  int distance = 1;
  for (; distance < n && me % (2 * distance) == 0; distance *= 2) {
    if (me + distance >= n) continue;
    double other = 0;
    wait(world.receive(me + distance, channel, up, view(other)));
    value += other;
  }
  if (me != 0) {
    wait(world.send(me - distance, channel, up, view(value)));
    wait(world.receive(me - distance, channel, down, view(value)));
  }
  for (distance /= 2; distance >= 1; distance /= 2)
    if (me + distance < n) wait(world.send(me + distance, channel, down, view(value)));
  return value;
}

}  // namespace echelon::test
