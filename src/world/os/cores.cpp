#include "world/os/cores.h"

#include <sched.h>
#include <signal.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

extern "C" void omp_set_num_threads(int threads);  // clang, which builds the fuzzers, has no omp.h

namespace echelon {

namespace {

// What the innocent cores of a team see when another one failed.
struct Abandoned {};

// About 50 us before going to sleep: longer than the gap between two phases of a step, shorter than anyone notices.
constexpr int spins = 20000;

void pause_briefly() { __builtin_ia32_pause(); }

// Waits until `value` is no longer `old`.
void wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause_briefly();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

struct Cores::Team {
  int count;
  Job job = nullptr;
  void* work = nullptr;
  std::atomic<std::uint32_t> started{0};   // one more for each piece of work
  std::atomic<std::uint32_t> finished{0};  // cores that have returned from the current one
  std::atomic<bool> closing{false};
  std::atomic<std::uint32_t> arrived{0}, generation{0};  // the barrier
  std::atomic<bool> failed{false};
  std::mutex failure_lock;
  std::exception_ptr failure;
  std::vector<std::thread> threads;

  void do_work(int core) {
    try {
      job(work, core);
    } catch (const Abandoned&) {
    } catch (...) {
      {
        const std::lock_guard lock(failure_lock);
        if (!failure) failure = std::current_exception();
      }
      failed.store(true, std::memory_order_release);
      generation.fetch_add(1, std::memory_order_acq_rel);  // whoever waits at the barrier looks up
      generation.notify_all();
    }
    finished.fetch_add(1, std::memory_order_acq_rel);
    finished.notify_all();
  }

  void live(int core) {
    omp_set_num_threads(1);
    for (std::uint32_t seen = 0;;) {
      wait_while(started, seen);
      if (closing.load(std::memory_order_acquire)) return;
      seen = started.load(std::memory_order_acquire);
      do_work(core);
    }
  }
};

Cores::Cores(int count) : team_(std::make_unique<Team>()) {
  team_->count = count;
  omp_set_num_threads(1);
  sigset_t all, before;  // signals are for the main thread
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int core = 1; core < count; ++core)
    team_->threads.emplace_back([team = team_.get(), core] { team->live(core); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Cores::~Cores() {
  team_->closing.store(true, std::memory_order_release);
  team_->started.fetch_add(1, std::memory_order_acq_rel);
  team_->started.notify_all();
  for (auto& t : team_->threads) t.join();
}

int Cores::count() const { return team_->count; }

void Cores::run_job(Job job, void* work) {
  Team& t = *team_;
  t.job = job;
  t.work = work;
  t.arrived.store(0, std::memory_order_relaxed);
  t.failed.store(false, std::memory_order_relaxed);
  t.failure = nullptr;
  t.finished.store(0, std::memory_order_relaxed);
  t.started.fetch_add(1, std::memory_order_acq_rel);
  t.started.notify_all();
  t.do_work(0);
  for (std::uint32_t done; (done = t.finished.load(std::memory_order_acquire)) < static_cast<std::uint32_t>(t.count);)
    wait_while(t.finished, done);
  if (t.failure) std::rethrow_exception(t.failure);
}

void Cores::barrier() {
  Team& t = *team_;
  const std::uint32_t now = t.generation.load(std::memory_order_acquire);
  if (t.failed.load(std::memory_order_acquire)) throw Abandoned{};
  if (t.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(t.count)) {
    t.arrived.store(0, std::memory_order_relaxed);
    t.generation.fetch_add(1, std::memory_order_acq_rel);
    t.generation.notify_all();
  } else {
    wait_while(t.generation, now);
  }
  if (t.failed.load(std::memory_order_acquire)) throw Abandoned{};
}

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace echelon
