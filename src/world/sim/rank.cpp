#include "world/sim/rank.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace echelon::sim {

namespace {
constexpr std::uint64_t most_clock_reads = 50'000'000;  // without any time passing
constexpr double birth = 1'700'000'000;                 // of every simulated world, in seconds since 1970
}  // namespace

class SimRank::SimClock final : public Clock {
 public:
  explicit SimClock(SimRank& rank) : rank_(rank) {}
  double seconds() override {
    rank_.clock_was_read();
    return rank_.machinery_.scheduler().now();
  }
  double unix_seconds() override { return birth + seconds(); }

 private:
  SimRank& rank_;
};

class SimRank::SimTask final : public Task {
 public:
  SimTask(SimRank& rank, const std::string& name, std::function<void()> body) : rank_(rank) {
    // Outlives this object's interest in it: the strand's body owns what it needs.
    shared_ = std::make_shared<Shared>();
    shared_->name = name;
    strand_ = scheduler().start(rank.rank(), name, [&rank, shared = shared_, body = std::move(body)] {
      try {
        rank.check_alive();
        body();
      } catch (const RankCrashed&) {
      } catch (...) {
        shared->error = std::current_exception();
      }
      shared->ended = true;
      if (shared->waiting) rank.machinery_.scheduler().wake(*shared->waiting);
    });
  }
  ~SimTask() override { wait_for_end(); }
  void join() override {
    wait_for_end();
    rank_.check_alive();
    if (shared_->error) std::rethrow_exception(std::exchange(shared_->error, nullptr));
  }

 private:
  struct Shared {
    std::string name;
    std::exception_ptr error;
    bool ended = false;
    Strand* waiting = nullptr;
  };
  Scheduler& scheduler() { return rank_.machinery_.scheduler(); }
  void wait_for_end() {
    const Scheduler::Describe describe = [this] { return "its task " + shared_->name; };
    while (!shared_->ended) {
      shared_->waiting = scheduler().current();
      scheduler().block_quietly(never, describe);
    }
    shared_->waiting = nullptr;
  }

  SimRank& rank_;
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<Strand> strand_;
};

class SimRank::SimEvent final : public Event {
 public:
  explicit SimEvent(SimRank& rank) : rank_(rank) {}
  void notify() override {
    ++count_;
    for (Strand* strand : waiting_) rank_.machinery_.scheduler().wake(*strand);
    waiting_.clear();
  }
  std::uint64_t count() override { return count_; }
  bool wait(std::uint64_t count, double deadline) override {
    Scheduler& scheduler = rank_.machinery_.scheduler();
    const Scheduler::Describe describe = [&] {
      return fmt::format("an event of its own to happen {} times ({} so far)", count, count_);
    };
    bool asked = false;
    while (count_ < count) {
      rank_.check_alive();
      if (scheduler.now() >= deadline && asked) return false;
      asked = true;
      waiting_.push_back(scheduler.current());
      struct Leave {
        std::vector<Strand*>& list;
        Strand* strand;
        ~Leave() { std::erase(list, strand); }
      } leave{waiting_, scheduler.current()};
      scheduler.block(std::max(deadline, scheduler.now() + 1e-6), describe);
    }
    rank_.check_alive();
    return true;
  }

 private:
  SimRank& rank_;
  std::uint64_t count_ = 0;
  std::vector<Strand*> waiting_;
};

SimRank::SimRank(Machinery& machinery, RankPlace place, double flops, std::shared_ptr<MemoryDisk> disk)
    : machinery_(machinery),
      place_(std::move(place)),
      flops_(flops),
      clock_(std::make_unique<SimClock>(*this)),
      disk_(disk_of_rank(*this, std::move(disk))) {}

SimRank::~SimRank() = default;

void SimRank::check_alive() const {
  if (state_ == State::crashed) throw RankCrashed{};
}

void SimRank::check_whole(const Scheduler::Describe& operation) const {
  if (failure_.known()) failure_.throw_peer_lost(operation());
}

void SimRank::lose(int rank, const std::string& reason) {
  if (state_ != State::running || rank == place_.rank || !failure_.set(rank, reason)) return;
  machinery_.scheduler().wake_all(place_.rank);
}

void SimRank::clock_was_read() {
  const double now = machinery_.scheduler().now();
  if (now > clock_read_at_) clock_reads_ = 0;
  clock_read_at_ = now;
  if (++clock_reads_ > most_clock_reads)
    fail("rank {} reads the clock again and again without waiting; in a simulation time passes only while a rank waits",
         place_.rank);
}

void SimRank::sleep(double seconds) {
  Scheduler& scheduler = machinery_.scheduler();
  const double until = scheduler.now() + std::max(seconds, 0.0);
  const Scheduler::Describe describe = [&] { return fmt::format("{} s to pass", seconds); };
  do {
    check_alive();
    scheduler.block(until, describe);
  } while (scheduler.now() < until);
  check_alive();
}

void SimRank::compute(double flops) {
  check_alive();
  const double now = machinery_.scheduler().now();
  const double begin = std::max(now, core_free_at_);
  const double seconds = flops / flops_ * machinery_.slowness(place_.rank);
  core_free_at_ = begin + seconds;
  machinery_.report().ranks[static_cast<std::size_t>(place_.rank)].compute_seconds += seconds;
  sleep(core_free_at_ - now);
}

std::unique_ptr<Task> SimRank::spawn(const std::string& name, std::function<void()> body) {
  check_alive();
  return std::make_unique<SimTask>(*this, name, std::move(body));
}

std::unique_ptr<Event> SimRank::make_event() { return std::make_unique<SimEvent>(*this); }

std::unique_ptr<CompletionQueue> SimRank::make_completion_queue() {
  return machinery_.transport().completions(place_.rank);
}

Work SimRank::send(Rank to, Channel channel, Label label, std::span<const std::byte> bytes) {
  return machinery_.transport().send(place_.rank, to, channel, label, bytes);
}

Work SimRank::receive(Rank from, Channel channel, Label label, std::span<std::byte> into) {
  return machinery_.transport().receive(place_.rank, from, channel, label, into.size(), into, {});
}

Work SimRank::receive(Rank from, Channel channel, Label label, std::size_t bytes, Sink sink) {
  return machinery_.transport().receive(place_.rank, from, channel, label, bytes, {}, sink);
}

RankStatus SimRank::status_of(Rank rank) {
  if (rank < 0 || rank >= place_.size) bad_input("there is no rank {} among {}", rank, place_.size);
  const SimRank& other = machinery_.rank(rank);
  if (other.state_ == State::ended) return {.activity = "nothing: its program has ended"};
  return other.status_;
}

void SimRank::abort(std::string_view reason, FailureKind kind) {
  if (state_ == State::crashed) return;  // it can say nothing; destructors ask, so it must not throw
  const std::string text(reason);
  machinery_.failed(place_.rank, text, false,
                    kind == FailureKind::bad_input ? std::make_exception_ptr(BadInput(text)) : nullptr);
  machinery_.tell_everybody(place_.rank, place_.rank, text);
}

// ---- the disk

namespace {

class RankFile final : public File {
 public:
  RankFile(const SimRank& rank, std::unique_ptr<File> file) : rank_(rank), file_(std::move(file)) {}
  std::uint64_t size() override { return rank_.check_alive(), file_->size(); }
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) override {
    return rank_.check_alive(), file_->read_at(offset, into);
  }
  void append(std::span<const std::byte> bytes) override { rank_.check_alive(), file_->append(bytes); }
  void sync() override { rank_.check_alive(), file_->sync(); }

 private:
  const SimRank& rank_;
  std::unique_ptr<File> file_;
};

class RankDisk final : public Disk {
 public:
  RankDisk(const SimRank& rank, std::shared_ptr<MemoryDisk> disk) : rank_(rank), disk_(std::move(disk)) {}
  std::unique_ptr<File> open(const std::string& p) override { return wrap(alive().open(p)); }
  std::unique_ptr<File> create(const std::string& p) override { return wrap(alive().create(p)); }
  std::unique_ptr<File> append_to(const std::string& p) override { return wrap(alive().append_to(p)); }
  void rename(const std::string& from, const std::string& to) override { alive().rename(from, to); }
  void make_directories(const std::string& p) override { alive().make_directories(p); }
  void remove_all(const std::string& p) override { alive().remove_all(p); }
  void sync_directory(const std::string& p) override { alive().sync_directory(p); }
  bool exists(const std::string& p) override { return alive().exists(p); }
  bool is_directory(const std::string& p) override { return alive().is_directory(p); }
  std::vector<std::string> list(const std::string& p) override { return alive().list(p); }

 private:
  MemoryDisk& alive() {
    rank_.check_alive();
    return *disk_;
  }
  std::unique_ptr<File> wrap(std::unique_ptr<File> file) { return std::make_unique<RankFile>(rank_, std::move(file)); }
  const SimRank& rank_;
  std::shared_ptr<MemoryDisk> disk_;
};

}  // namespace

std::unique_ptr<Disk> disk_of_rank(const SimRank& rank, std::shared_ptr<MemoryDisk> disk) {
  return std::make_unique<RankDisk>(rank, std::move(disk));
}

}  // namespace echelon::sim
