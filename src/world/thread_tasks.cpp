#include "world/thread_tasks.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace echelon {

namespace {

class ThreadTask : public Task {
 public:
  ThreadTask(const std::string& name, std::function<void()> body) {
    sigset_t all, before;  // a new thread inherits the mask it is born with
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this, work = std::move(body)] {
      try {
        work();
      } catch (...) {
        failure_ = std::current_exception();
      }
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
  }
  ~ThreadTask() override {
    if (thread_.joinable()) thread_.join();
  }
  void join() override {
    if (thread_.joinable()) thread_.join();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  std::thread thread_;
  std::exception_ptr failure_;
};

class ThreadEvent : public Event {
 public:
  explicit ThreadEvent(Clock& clock) : clock_(clock) {}
  void notify() override {
    {
      const std::lock_guard lock(mutex_);
      ++count_;
    }
    changed_.notify_all();
  }
  std::uint64_t count() override {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  bool wait(std::uint64_t count, double deadline) override {
    std::unique_lock lock(mutex_);
    const double seconds = std::clamp(deadline - clock_.seconds(), 0.0, 1e6);
    return changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return count_ >= count; });
  }

 private:
  Clock& clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Task> start_thread(const std::string& name, std::function<void()> body) {
  return std::make_unique<ThreadTask>(name, std::move(body));
}

std::unique_ptr<Event> make_thread_event(Clock& clock) { return std::make_unique<ThreadEvent>(clock); }

}  // namespace echelon
