#include "world/rank_status.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace echelon {

std::string to_text(const RankStatus& status) {
  const std::string what = status.activity.empty() ? "its program" : status.activity;
  return status.waiting_for < 0 ? what : fmt::format("{}, waiting for rank {}", what, status.waiting_for);
}

std::vector<std::byte> encode(const RankStatus& status) {
  const auto waiting_for = static_cast<std::int32_t>(status.waiting_for);
  const std::size_t length = std::min(status.activity.size(), RankStatus::activity_bytes);
  std::vector<std::byte> bytes(sizeof waiting_for + length);
  std::memcpy(bytes.data(), &waiting_for, sizeof waiting_for);
  std::memcpy(bytes.data() + sizeof waiting_for, status.activity.data(), length);
  return bytes;
}

RankStatus decode_status(std::span<const std::byte> bytes, int ranks) {
  std::int32_t waiting_for = 0;
  if (bytes.size() < sizeof waiting_for || bytes.size() > sizeof waiting_for + RankStatus::activity_bytes)
    fail("a status of {} bytes: expected {} to {}", bytes.size(), sizeof waiting_for,
         sizeof waiting_for + RankStatus::activity_bytes);
  std::memcpy(&waiting_for, bytes.data(), sizeof waiting_for);
  if (waiting_for < -1 || waiting_for >= ranks)
    fail("a status says that its rank waits for rank {}, of {} ranks", waiting_for, ranks);
  const auto text = bytes.subspan(sizeof waiting_for);
  return {.activity = std::string(reinterpret_cast<const char*>(text.data()), text.size()), .waiting_for = waiting_for};
}

}  // namespace echelon
