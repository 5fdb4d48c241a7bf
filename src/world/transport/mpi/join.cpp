#include "world/transport/mpi/join.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>
#include <optional>

#include "world/channels.h"
#include "world/first_failure.h"
#include "world/os/host.h"
#include "world/os/host_identity.h"
#include "world/os/tasks.h"
#include "world/rank_result.h"
#include "world/transport/memory/host_ranks.h"
#include "world/transport/mpi/library.h"
#include "world/transport/mpi/transport.h"

namespace echelon {

namespace {

using namespace echelon::mpi;  // NOLINT: this file is the api of that namespace

constexpr double join_seconds = 60;

class MpiWorld;

// A message between ranks of one machine, in a world of several: while one waits for it, MPI must go on.
struct NearWork final : Operation {
  bool wait(double deadline) override;
  bool finished() override { return inner.finished(); }
  void release() override;
  MpiWorld* world = nullptr;
  Work inner;
};

class MpiWorld final : public World {
 public:
  MpiWorld(EchelonMpiApi& api, const LaunchOptions& launch, const MpiOptions& options)
      : api_(api),
        clock_(make_real_clock()),
        disk_(make_real_disk()),
        transport_(api, failure_, *clock_, [this] { look_around(); }) {
    place_.world = "mpi";
    place_.rank = api.rank;
    place_.size = api.size;
    exchange_places(launch);
    if (options.share_memory) host_ranks_ = HostRanks::find(*this, launch, host_ranks_channel, now() + join_seconds);
  }

  const RankPlace& place() const override { return place_; }
  Clock& clock() override { return *clock_; }
  void sleep(double seconds) override { sleep_really(seconds); }
  void compute(double) override {}
  Disk& disk() override { return *disk_; }
  std::unique_ptr<Task> spawn(const std::string& name, std::function<void()> body) override {
    return spawn_thread(name, std::move(body));
  }
  std::unique_ptr<Event> make_event() override { return make_thread_event(); }

  Work send(Rank to, Channel channel, Label label, std::span<const std::byte> bytes) override {
    if (near(to)) return watch(host_ranks_->endpoint().send(host_ranks_->index(to), channel, label, bytes));
    return transport_.send(to, channel, label, bytes);
  }
  Work receive(Rank from, Channel channel, Label label, std::span<std::byte> into) override {
    return receive(from, channel, label, into.data(), into.size(), {});
  }
  Work receive(Rank from, Channel channel, Label label, std::size_t bytes, Sink sink) override {
    return receive(from, channel, label, nullptr, bytes, sink);
  }
  SharedMemory* shared_memory() override { return host_ranks_ ? host_ranks_->shared_memory() : nullptr; }

  bool native_all_reduce(void* data, std::size_t count, int type, int op) override {
    if (type < 1 || type > 4 || op < 0 || op > 2) return false;
    check(api_, api_.all_reduce(data, count, type, op), "MPI_Allreduce");
    return true;
  }

  void set_status(std::string_view what) override {
    const std::lock_guard lock(mutex_);
    status_ = what.substr(0, SharedText::capacity);
    if (host_ranks_) host_ranks_->segment().rank(host_ranks_->index(rank())).status.write(what);
  }
  std::string status_of(Rank other) override {
    if (near(other)) return host_ranks_->segment().rank(host_ranks_->index(other)).status.read();
    if (other != rank()) return "its work (on another machine: MPI does not tell)";
    const std::lock_guard lock(mutex_);
    return status_;
  }
  void abort(std::string_view reason) override {
    if (failure_.set(rank(), std::string(reason))) say_to_all(FrameKind::abort, reason);
    tell_host_ranks();
  }

  bool broken() const { return failure_.known() || (host_ranks_ && host_ranks_->segment().failure().broken()); }
  void finish();
  void end_after_failure(double grace_seconds);
  void look_around();  // while somebody waits

 private:
  bool near(Rank other) const { return host_ranks_ && host_ranks_->has(other); }
  bool far_ranks() const { return host_ranks_ && !host_ranks_->shared_memory(); }
  Work receive(Rank from, Channel channel, Label label, std::byte* into, std::size_t bytes, Sink sink) {
    if (near(from)) {
      return watch(host_ranks_->endpoint().receive(host_ranks_->index(from), channel, label, bytes, into, sink));
    }
    return transport_.receive(from, channel, label, into, bytes, sink);
  }
  Work watch(Work work);
  void exchange_places(const LaunchOptions& launch);
  void say_to_all(FrameKind kind, std::string_view text, std::uint64_t sequence = 0) {
    for (Rank other = 0; other < size(); ++other) {
      if (other != rank()) transport_.say(kind, other, text, sequence);
    }
  }
  void tell_host_ranks() {
    if (host_ranks_ && failure_.known()) {
      host_ranks_->segment().break_world(failure_.rank(), FailureKind::failure, failure_.reason());
    }
  }

  friend struct NearWork;
  EchelonMpiApi& api_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Disk> disk_;
  RankPlace place_;
  FirstFailure failure_;
  MpiTransport transport_;
  std::unique_ptr<HostRanks> host_ranks_;
  std::mutex mutex_;
  std::string status_;
  std::deque<NearWork> near_works_;
  std::vector<NearWork*> free_;
};

// Who shares a machine with whom, and the seed of rank 0.
void MpiWorld::exchange_places(const LaunchOptions& launch) {
  struct Card {
    std::array<char, 184> host;
    std::uint64_t seed;
  };
  Card mine{};
  host_identity().copy(mine.host.data(), mine.host.size() - 1);
  mine.seed = launch.seed;
  std::vector<Card> cards(static_cast<std::size_t>(api_.size));
  check(api_, api_.all_gather(&mine, cards.data(), static_cast<int>(sizeof mine)), "MPI_Allgather");
  std::map<std::string, int> hosts;
  std::vector<int> of_ranks;
  for (const Card& card : cards)
    of_ranks.push_back(hosts.emplace(card.host.data(), static_cast<int>(hosts.size())).first->second);
  place_.host = std::move(of_ranks);
  place_.seed = cards.front().seed;
}

Work MpiWorld::watch(Work work) {
  if (!far_ranks() || work.done()) return work;
  const std::lock_guard lock(mutex_);
  if (free_.empty()) free_.push_back(&near_works_.emplace_back());
  NearWork& n = *free_.back();
  free_.pop_back();
  n.world = this;
  n.inner = std::move(work);
  return Work(&n);
}

bool NearWork::wait(double deadline) {
  constexpr double slice_seconds = 2e-4;
  for (;;) {
    const double now = world->now();
    if (inner.wait(std::min(deadline, now + slice_seconds))) return true;
    if (now >= deadline) return false;
    world->transport_.progress();
    world->look_around();
  }
}

void NearWork::release() {
  inner = Work();
  const std::lock_guard lock(world->mutex_);
  world->free_.push_back(this);
}

void MpiWorld::look_around() {
  if (!host_ranks_) return;
  host_ranks_->endpoint().progress();
  if (failure_.known()) tell_host_ranks();
  const SharedFailure& failure = host_ranks_->segment().failure();
  if (failure.broken()) failure_.set(failure.rank(), failure.reason());
}

void MpiWorld::finish() {
  if (host_ranks_) host_ranks_->end();
  say_to_all(FrameKind::bye, {});
  while (!transport_.wait_for(
      now() + 60, [&] { return failure_.known() || (transport_.all_have_ended() && transport_.nothing_left()); })) {
  }
  if (failure_.known()) failure_.throw_peer_lost("the end of the program");
}

// MPI ends well only if all ranks come to the end. Those that wait for a message hear of the failure and do; the others
// have some time.
void MpiWorld::end_after_failure(double grace_seconds) {
  tell_host_ranks();
  if (failure_.rank() != rank()) {
    say_to_all(FrameKind::lost, failure_.reason(), static_cast<std::uint64_t>(failure_.rank()));
  }
  if (host_ranks_) host_ranks_->end();
  if (transport_.wait_for(now() + grace_seconds,
                          [&] { return transport_.all_have_ended() && transport_.nothing_left(); }))
    return;
  std::fprintf(stderr, "rank %d: %s\n", failure_.rank(), failure_.reason().c_str());
  std::fflush(nullptr);
  api_.abort(1);
}

void run(EchelonMpiApi& api, const LaunchOptions& launch, const Program& program, const MpiOptions& options) {
  std::optional<MpiWorld> made;
  try {
    made.emplace(api, launch, options);
  } catch (const std::exception& e) {
    // The others wait inside MPI for a rank that will not come, and only MPI can tell them.
    std::fprintf(stderr, "rank %d: %s\n", api.rank, e.what());
    std::fflush(nullptr);
    api.abort(1);
    throw;
  }
  MpiWorld& world = *made;
  try {
    try {
      program(world);
    } catch (const PeerLost& e) {
      if (world.broken()) throw;
      world.abort(e.what());
      throw Failure(e.what());
    } catch (const std::exception& e) {
      world.abort(e.what());
      throw;
    }
    world.finish();
  } catch (...) {
    world.look_around();
    world.end_after_failure(launch.grace_seconds);
    throw;
  }
}

}  // namespace

void join_mpi(const LaunchOptions& launch, const Program& program, const MpiOptions& options) {
  EchelonMpiApi& api = mpi::start();
  struct Finish {
    EchelonMpiApi& api;
    ~Finish() { api.finish(); }
  } const finish{api};
  as_rank(api.rank, [&] { run(api, launch, program, options); });
}

bool started_by_mpi(const ReadVariable& variable) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) {
    if (!variable(name).empty()) return true;
  }
  return false;
}

bool started_by_mpi() {
  return started_by_mpi([](const std::string& name) { return environment(name); });
}

}  // namespace echelon
