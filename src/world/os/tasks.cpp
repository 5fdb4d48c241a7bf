#include "world/os/tasks.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <exception>
#include <thread>

#include "world/os/short_slices.h"
#include "world/os/wake_up.h"

namespace echelon {

namespace {

class ThreadTask : public Task {
 public:
  ThreadTask(const std::string& name, std::function<void()> body) : body_(std::move(body)) {
    sigset_t all, before;  // the new thread inherits the mask it is born with
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] {
      ask_for_short_slices();  // a message that has come is passed on, whoever computes meanwhile
      try {
        body_();
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
  std::function<void()> body_;
  std::exception_ptr failure_;
  std::thread thread_;
};

class ThreadEvent : public Event {
 public:
  void notify() override {
    count_.fetch_add(1, std::memory_order_seq_cst);
    wake_up_.wake();
  }
  std::uint64_t count() override { return count_.load(std::memory_order_acquire); }
  bool wait(std::uint64_t count, double deadline) override {
    static constexpr SpinPolicy spin_policy{.spin_seconds = 20e-6};
    SpinWait timeout(spin_policy, deadline);
    for (;;) {
      if (count_.load(std::memory_order_acquire) >= count) return true;
      switch (timeout.pause()) {
        case SpinWait::Advice::look_again: break;
        case SpinWait::Advice::too_late: return false;
        case SpinWait::Advice::sleep:
          wake_up_.sleep(timeout.seconds_to_sleep(), [&] { return count_.load(std::memory_order_seq_cst) >= count; });
      }
    }
  }

 private:
  std::atomic<std::uint64_t> count_{0};
  WakeUp wake_up_;
};

}  // namespace

std::unique_ptr<Task> spawn_thread(const std::string& name, std::function<void()> body) {
  return std::make_unique<ThreadTask>(name, std::move(body));
}

std::unique_ptr<Event> make_thread_event() { return std::make_unique<ThreadEvent>(); }

void sleep_really(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace echelon
