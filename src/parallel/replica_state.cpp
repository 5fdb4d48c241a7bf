#include "parallel/replica_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "collective/collectives.h"

namespace echelon {

ReplicaState::ReplicaState(Team& team, const std::vector<StateSpan>& own) : team_(team) {
  std::size_t bytes = 0;
  for (const StateSpan& s : own) bytes += s.bytes.size();
  sizes_ = team.all_gather_struct(bytes);
  packed_ = Buffer(team.world().rank() == 0 ? std::accumulate(sizes_.begin(), sizes_.end(), std::size_t{0}) : bytes);
}

void ReplicaState::gather(const std::vector<StateSpan>& own) {
  std::byte* to = packed_.as<std::byte>().data();
  for (const StateSpan& s : own) to = std::ranges::copy(s.bytes, to).out;  // empty ones too, unlike memcpy
  move(true);
}

void ReplicaState::scatter(const std::vector<StateSpan>& own) {
  move(false);
  std::span<const std::byte> from = packed_.as<std::byte>();
  for (const StateSpan& s : own) {
    std::ranges::copy(from.first(s.bytes.size()), s.bytes.data());
    from = from.subspan(s.bytes.size());
  }
}

std::vector<StateSpan> ReplicaState::all() {
  std::vector<StateSpan> all;
  std::size_t at = 0;
  for (std::size_t r = 0; r < sizes_.size(); ++r) {
    all.push_back({fmt::format("replica.{}", r), packed_.as<std::byte>().subspan(at, sizes_[r])});
    at += sizes_[r];
  }
  return all;
}

void ReplicaState::move(bool to_first) {
  const World& world = team_.world();
  if (world.size() == 1) return;
  std::vector<Range> out(sizes_.size()), in(sizes_.size());
  const std::span<std::byte> packed = packed_.as<std::byte>();
  if (world.rank() == 0) {
    std::size_t at = sizes_[0];
    for (std::size_t r = 1; r < sizes_.size(); ++r) {
      (to_first ? in : out)[r] = {at, at + sizes_[r]};
      at += sizes_[r];
    }
  } else {
    (to_first ? out : in)[0] = {0, packed.size()};
  }
  const bool sends = (world.rank() == 0) != to_first;
  const std::span<std::byte> none;
  all_to_all(team_.group(), const_typed_span(std::span<const std::byte>(sends ? packed : none)), out,
             typed_span(sends ? none : packed), in, "state");
}

}  // namespace echelon
