#pragma once
// What a rank is doing, and for whom it waits: told by the rank itself (World::set_status, World::set_waiting_for) and
// read by others while they wait for it (World::status_of). Plain data; every world carries it as fields.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace echelon {

using Rank = int;

struct RankStatus {
  static constexpr std::size_t activity_bytes = 63;  // of which a world keeps that many

  std::string activity;   // "backward of conv2"; empty: it has not said
  Rank waiting_for = -1;  // the rank whose message or arrival it has been waiting for, for some time; -1: none

  friend bool operator==(const RankStatus&, const RankStatus&) = default;
};

// For people: "backward of conv2", "backward of conv2, waiting for rank 3", "its program" if it has said nothing.
std::string to_text(const RankStatus& status);

// The bytes of a status frame (world/transport/frame.h): waiting_for as 32 bits, little-endian, then the activity.
std::vector<std::byte> encode(const RankStatus& status);
// Throws Failure if these are no status of a rank among `ranks`.
RankStatus decode_status(std::span<const std::byte> bytes, int ranks);

}  // namespace echelon
