#include "world/mpi/join.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>
#include <optional>

#include "world/channels.h"
#include "world/first_failure.h"
#include "world/host.h"
#include "world/host_identity.h"
#include "world/memory/neighbours.h"
#include "world/mpi/library.h"
#include "world/mpi/mail.h"
#include "world/rank_result.h"
#include "world/tasks.h"

namespace echelon {

namespace {

using namespace echelon::mpi;  // NOLINT: this file is the face of that namespace

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
  MpiWorld(EchelonMpiFace& face, const LaunchOptions& launch, const MpiOptions& options)
      : face_(face),
        clock_(make_real_clock()),
        disk_(make_real_disk()),
        mail_(face, fate_, *clock_, [this] { look_around(); }) {
    place_.world = "mpi";
    place_.rank = face.rank;
    place_.size = face.size;
    exchange_places(launch);
    if (options.share_memory) neighbours_ = Neighbours::find(*this, launch, neighbours_channel, now() + join_seconds);
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
    if (near(to)) return watch(neighbours_->endpoint().send(neighbours_->index(to), channel, label, bytes));
    return mail_.send(to, channel, label, bytes);
  }
  Work receive(Rank from, Channel channel, Label label, std::span<std::byte> into) override {
    return receive(from, channel, label, into.data(), into.size(), {});
  }
  Work receive(Rank from, Channel channel, Label label, std::size_t bytes, Sink sink) override {
    return receive(from, channel, label, nullptr, bytes, sink);
  }
  SharedMemory* shared_memory() override { return neighbours_ ? neighbours_->shared_memory() : nullptr; }

  bool native_all_reduce(void* data, std::size_t count, int type, int op) override {
    if (type < 1 || type > 4 || op < 0 || op > 2) return false;
    check(face_, face_.all_reduce(data, count, type, op), "MPI_Allreduce");
    return true;
  }

  void doing(std::string_view what) override {
    const std::lock_guard lock(mutex_);
    doing_ = what.substr(0, Board::capacity);
    if (neighbours_) neighbours_->segment().rank(neighbours_->index(rank())).doing.write(what);
  }
  std::string doing_of(Rank other) override {
    if (near(other)) return neighbours_->segment().rank(neighbours_->index(other)).doing.read();
    if (other != rank()) return "its work (on another machine: MPI does not tell)";
    const std::lock_guard lock(mutex_);
    return doing_;
  }
  void give_up(std::string_view reason) override {
    if (fate_.set(rank(), std::string(reason))) say_to_all(FrameKind::give_up, reason);
    tell_neighbours();
  }

  bool broken() const { return fate_.known() || (neighbours_ && neighbours_->segment().fate().broken()); }
  void finish();
  void end_after_failure(double grace_seconds);
  void look_around();  // while somebody waits

 private:
  bool near(Rank other) const { return neighbours_ && neighbours_->has(other); }
  bool far_ranks() const { return neighbours_ && !neighbours_->shared_memory(); }
  Work receive(Rank from, Channel channel, Label label, std::byte* into, std::size_t bytes, Sink sink) {
    if (near(from)) {
      return watch(neighbours_->endpoint().receive(neighbours_->index(from), channel, label, bytes, into, sink));
    }
    return mail_.receive(from, channel, label, into, bytes, sink);
  }
  Work watch(Work work);
  void exchange_places(const LaunchOptions& launch);
  void say_to_all(FrameKind kind, std::string_view text, std::uint64_t sequence = 0) {
    for (Rank other = 0; other < size(); ++other) {
      if (other != rank()) mail_.say(kind, other, text, sequence);
    }
  }
  void tell_neighbours() {
    if (neighbours_ && fate_.known()) {
      neighbours_->segment().break_world(fate_.rank(), FailureKind::failure, fate_.reason());
    }
  }

  friend struct NearWork;
  EchelonMpiFace& face_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Disk> disk_;
  RankPlace place_;
  FirstFailure fate_;
  Mail mail_;
  std::unique_ptr<Neighbours> neighbours_;
  std::mutex mutex_;
  std::string doing_;
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
  std::vector<Card> cards(static_cast<std::size_t>(face_.size));
  check(face_, face_.all_gather(&mine, cards.data(), static_cast<int>(sizeof mine)), "MPI_Allgather");
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
    world->mail_.progress();
    world->look_around();
  }
}

void NearWork::release() {
  inner = Work();
  const std::lock_guard lock(world->mutex_);
  world->free_.push_back(this);
}

void MpiWorld::look_around() {
  if (!neighbours_) return;
  neighbours_->endpoint().progress();
  if (fate_.known()) tell_neighbours();
  const Fate& fate = neighbours_->segment().fate();
  if (fate.broken()) fate_.set(fate.rank(), fate.reason());
}

void MpiWorld::finish() {
  if (neighbours_) neighbours_->end();
  say_to_all(FrameKind::bye, {});
  while (
      !mail_.wait_for(now() + 60, [&] { return fate_.known() || (mail_.all_have_ended() && mail_.nothing_left()); })) {
  }
  if (fate_.known()) fate_.throw_peer_lost("the end of the program");
}

// MPI ends well only if all ranks come to the end. Those that wait for a message hear of the failure and do; the others
// have some time.
void MpiWorld::end_after_failure(double grace_seconds) {
  tell_neighbours();
  if (fate_.rank() != rank()) {
    say_to_all(FrameKind::lost, fate_.reason(), static_cast<std::uint64_t>(fate_.rank()));
  }
  if (neighbours_) neighbours_->end();
  if (mail_.wait_for(now() + grace_seconds, [&] { return mail_.all_have_ended() && mail_.nothing_left(); })) return;
  std::fprintf(stderr, "rank %d: %s\n", fate_.rank(), fate_.reason().c_str());
  std::fflush(nullptr);
  face_.abort(1);
}

void run(EchelonMpiFace& face, const LaunchOptions& launch, const Program& program, const MpiOptions& options) {
  std::optional<MpiWorld> made;
  try {
    made.emplace(face, launch, options);
  } catch (const std::exception& e) {
    // The others wait inside MPI for a rank that will not come, and only MPI can tell them.
    std::fprintf(stderr, "rank %d: %s\n", face.rank, e.what());
    std::fflush(nullptr);
    face.abort(1);
    throw;
  }
  MpiWorld& world = *made;
  try {
    try {
      program(world);
    } catch (const PeerLost& e) {
      if (world.broken()) throw;
      world.give_up(e.what());
      throw Failure(e.what());
    } catch (const std::exception& e) {
      world.give_up(e.what());
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
  EchelonMpiFace& face = mpi::start();
  struct Finish {
    EchelonMpiFace& face;
    ~Finish() { face.finish(); }
  } const finish{face};
  as_rank(face.rank, [&] { run(face, launch, program, options); });
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
