#include "world/transport/memory/host_ranks.h"

#include <array>

#include "world/transport/memory/regions.h"

namespace echelon {

namespace {

using Path = std::array<char, 64>;  // ends with a zero; empty: there is none

class Conversation {
 public:
  Conversation(World& world, Channel channel, double deadline)
      : world_(world), channel_(channel), deadline_(deadline) {}

  template <typename T>
  void say(Rank to, const T& what) {
    finish(world_.send(to, channel_, {}, std::as_bytes(std::span(&what, 1))), to);
  }
  template <typename T>
  T hear(Rank from) {
    T what{};
    finish(world_.receive(from, channel_, {}, std::as_writable_bytes(std::span(&what, 1))), from);
    return what;
  }

 private:
  void finish(Work work, Rank other) {
    if (!work.wait(deadline_)) {
      throw TooLate(fmt::format("rank {} waited too long for rank {} on the same machine", world_.rank(), other));
    }
  }

  World& world_;
  const Channel channel_;
  const double deadline_;
};

// Only what Segment::path gives: a peer's word is not taken for any other file.
bool looks_right(const Path& path) {
  const std::string_view text(path.data());
  if (path.back() != '\0' || !text.starts_with("/proc/")) return false;
  const auto middle = text.find("/fd/");
  if (middle == std::string_view::npos) return false;
  const auto digits = [](std::string_view s) {
    return !s.empty() && s.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return digits(text.substr(6, middle - 6)) && digits(text.substr(middle + 4));
}

std::unique_ptr<Segment> attach(const Path& path) {
  if (!looks_right(path)) return nullptr;
  try {
    return Segment::attach(path.data());
  } catch (const Error&) {
    return nullptr;  // then we talk through the network
  }
}

std::unique_ptr<Segment> create(int ranks, std::size_t bytes, Path& path) {
  try {
    auto segment = Segment::create(Segment::Reach::machine, ranks, bytes);
    const std::string text = segment->path();
    if (text.size() < path.size()) text.copy(path.data(), text.size());
    return segment;
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

std::unique_ptr<HostRanks> HostRanks::find(World& world, const LaunchOptions& options, Channel channel,
                                           double deadline) {
  const RankPlace& place = world.place();
  const auto host_of = [&](Rank rank) { return place.host[static_cast<std::size_t>(rank)]; };
  std::vector<Rank> members;
  for (Rank rank = 0; rank < place.size; ++rank) {
    if (host_of(rank) == host_of(place.rank)) members.push_back(rank);
  }
  if (members.size() == 1) return nullptr;
  Conversation talk(world, channel, deadline);
  std::unique_ptr<Segment> segment;
  std::uint8_t all = 1;
  if (place.rank == members.front()) {  // makes it; then asks whether everybody has it
    Path path{};
    segment = create(static_cast<int>(members.size()), options.shared_bytes, path);
    for (const Rank rank : members) {
      if (rank != place.rank) talk.say(rank, path);
    }
    for (const Rank rank : members) {
      if (rank != place.rank) all &= talk.hear<std::uint8_t>(rank);
    }
    for (const Rank rank : members) {
      if (rank != place.rank) talk.say(rank, all);
    }
  } else {
    segment = attach(talk.hear<Path>(members.front()));
    talk.say<std::uint8_t>(members.front(), segment ? 1 : 0);
    all = talk.hear<std::uint8_t>(members.front());
  }
  if (!segment || !all) return nullptr;
  return std::unique_ptr<HostRanks>(new HostRanks(world, std::move(segment), members));
}

HostRanks::HostRanks(World& world, std::unique_ptr<Segment> segment, const std::vector<Rank>& members)
    : me_(world.rank()), index_(static_cast<std::size_t>(world.size()), -1), segment_(std::move(segment)) {
  for (std::size_t i = 0; i < members.size(); ++i) index_[static_cast<std::size_t>(members[i])] = static_cast<int>(i);
  endpoint_ = std::make_unique<Endpoint>(*segment_, index(me_), members);
  if (members.size() == index_.size()) shared_ = make_shared_memory(*segment_);
}

void HostRanks::end() {
  segment_->rank(index(me_)).ended.store(1, std::memory_order_release);
  for (int r = 0; r < segment_->ranks(); ++r) segment_->rank(r).wake_up.wake();
}

}  // namespace echelon
