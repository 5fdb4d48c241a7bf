#include "world/transport/mpi/mpi_world.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "world/channels.h"
#include "world/os/host_identity.h"
#include "world/transport/mpi/library.h"

namespace echelon::mpi {

namespace {

constexpr double join_seconds = 60;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

MpiWorld::MpiWorld(EchelonMpiApi& api, const LaunchOptions& launch, const MpiOptions& options)
    : api_(api),
      transport_(
          api, failure_, clock(), [this] { make_progress(); },
          [this](Rank from, const RankStatus& status) {
            const std::lock_guard lock(mutex_);
            told_[static_cast<std::size_t>(from)] = status;
          }),
      told_(static_cast<std::size_t>(api.size)) {
  status_.activity.reserve(RankStatus::activity_bytes);
  place_.world = "mpi";
  place_.rank = api.rank;
  place_.size = api.size;
  exchange_places(launch);
  if (options.share_memory) host_ranks_ = HostRanks::find(*this, launch, host_ranks_channel, now() + join_seconds);
}

// Which ranks share a machine, and the seed of rank 0.
void MpiWorld::exchange_places(const LaunchOptions& launch) {
  struct Place {
    std::array<char, 184> host;
    std::uint64_t seed;
  };
  Place mine{};
  host_identity().copy(mine.host.data(), mine.host.size() - 1);
  mine.seed = launch.seed;
  std::vector<Place> places(static_cast<std::size_t>(api_.size));
  check(api_, api_.all_gather(&mine, places.data(), static_cast<int>(sizeof mine)), "MPI_Allgather");
  std::map<std::string, int> hosts;
  std::vector<int> of_ranks;
  for (const Place& place : places)
    of_ranks.push_back(hosts.emplace(place.host.data(), static_cast<int>(hosts.size())).first->second);
  place_.host = std::move(of_ranks);
  place_.seed = places.front().seed;
}

// ---- messages

Work MpiWorld::send(Rank to, Channel channel, Label label, std::span<const std::byte> bytes) {
  if (on_this_machine(to))
    return with_mpi_progress(host_ranks_->endpoint().send(host_ranks_->index(to), channel, label, bytes));
  return transport_.send(to, channel, label, bytes);
}

Work MpiWorld::receive(Rank from, Channel channel, Label label, std::byte* into, std::size_t bytes, Sink sink) {
  if (on_this_machine(from))
    return with_mpi_progress(
        host_ranks_->endpoint().receive(host_ranks_->index(from), channel, label, bytes, into, sink));
  return transport_.receive(from, channel, label, into, bytes, sink);
}

bool MpiWorld::native_all_reduce(void* data, std::size_t count, int type, int op) {
  if (type < 1 || type > 4 || op < 0 || op > 2) return false;
  check(api_, api_.all_reduce(data, count, type, op), "MPI_Allreduce");
  return true;
}

Work MpiWorld::with_mpi_progress(Work work) {
  const bool all_here = !host_ranks_ || host_ranks_->shared_memory();
  if (all_here || work.done()) return work;
  const std::lock_guard lock(mutex_);
  LocalWork& local = local_works_.take();
  local.world = this;
  local.inner = std::move(work);
  return Work(&local);
}

bool MpiWorld::LocalWork::wait(double deadline) {
  constexpr double slice_seconds = 2e-4;
  for (;;) {
    const double now = world->now();
    if (inner.wait(std::min(deadline, now + slice_seconds))) return true;
    if (now >= deadline) return false;
    world->transport_.progress();
    world->make_progress();
  }
}

void MpiWorld::LocalWork::release() {
  inner = Work();
  const std::lock_guard lock(world->mutex_);
  world->local_works_.give_back(*this);
}

void MpiWorld::make_progress() {
  if (!host_ranks_) return;
  host_ranks_->endpoint().progress();
  if (failure_.known()) tell_host_ranks();
  const FirstFailure& failure = host_ranks_->segment().failure();
  if (failure.known()) failure_.set(failure.rank(), failure.reason());
}

// ---- status and failure

void MpiWorld::tell_all(FrameKind kind, std::span<const std::byte> payload, std::uint64_t sequence) {
  for (Rank other = 0; other < size(); ++other) {
    if (other != rank()) transport_.say(kind, other, payload, sequence);
  }
}

void MpiWorld::tell_host_ranks() {
  if (host_ranks_ && failure_.known()) host_ranks_->segment().fail_world(failure_.rank(), failure_.reason());
}

void MpiWorld::set_status(std::string_view activity) {
  const std::lock_guard lock(mutex_);
  status_.activity.assign(activity.substr(0, RankStatus::activity_bytes));
  if (host_ranks_) host_ranks_->set_status(status_);
}

void MpiWorld::set_waiting_for(Rank rank) {
  RankStatus status;
  {
    const std::lock_guard lock(mutex_);
    status_.waiting_for = rank;
    if (host_ranks_) host_ranks_->set_status(status_);
    if (host_ranks_ && host_ranks_->shared_memory()) return;  // all ranks are on this machine
    status = status_;
  }
  const auto bytes = encode(status);
  for (Rank other = 0; other < size(); ++other) {
    if (other != this->rank() && !on_this_machine(other)) transport_.say(FrameKind::status, other, bytes);
  }
}

RankStatus MpiWorld::status_of(Rank rank) {
  if (on_this_machine(rank)) return host_ranks_->status_of(rank);
  const std::lock_guard lock(mutex_);
  return rank == this->rank() ? status_ : told_[static_cast<std::size_t>(rank)];
}

void MpiWorld::abort(std::string_view reason, FailureKind kind) {
  if (failure_.set(rank(), reason, kind)) tell_all(FrameKind::abort, bytes_of(reason), lost_sequence(rank(), kind));
  tell_host_ranks();
}

// ---- the end

void MpiWorld::finish() {
  if (host_ranks_) host_ranks_->end();
  tell_all(FrameKind::bye, {});
  while (!transport_.wait_for(
      now() + 60, [&] { return failure_.known() || (transport_.all_have_ended() && transport_.nothing_left()); })) {
  }
  if (failure_.known()) failure_.throw_peer_lost("the end of the program");
}

void MpiWorld::end_after_failure(double grace_seconds) {
  tell_host_ranks();
  if (failure_.rank() != rank())
    tell_all(FrameKind::lost, bytes_of(failure_.reason()), lost_sequence(failure_.rank(), failure_.kind()));
  if (host_ranks_) host_ranks_->end();
  if (transport_.wait_for(now() + grace_seconds,
                          [&] { return transport_.all_have_ended() && transport_.nothing_left(); }))
    return;
  std::fprintf(stderr, "rank %d: %s\n", failure_.rank(), failure_.reason().c_str());
  std::fflush(nullptr);
  api_.abort(1);
}

}  // namespace echelon::mpi
