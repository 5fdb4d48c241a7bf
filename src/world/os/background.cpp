#include "world/os/background.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace echelon {

namespace {

// A job and the promise of its end. What the job holds is let go before it counts as done (a std::packaged_task would
// keep it as long as anybody keeps the future, for ever if the job itself holds the future).
class Job {
 public:
  explicit Job(std::function<void()> work) : work_(std::move(work)) {}
  std::future<void> future() { return done_.get_future(); }
  void run() {
    std::exception_ptr failure;
    try {
      work_();
    } catch (...) {
      failure = std::current_exception();
    }
    work_ = nullptr;
    if (failure)
      done_.set_exception(failure);
    else
      done_.set_value();
  }

 private:
  std::function<void()> work_;
  std::promise<void> done_;
};

class Worker : public Background {
 public:
  Worker(const std::string& name, std::size_t capacity) : capacity_(capacity) {
    // Signals are for the thread that started the program; the new thread inherits the mask it is born with.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
  }
  ~Worker() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  std::future<void> post(std::function<void()> job) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return jobs_.size() < capacity_; });
    return accept(std::move(job));
  }
  std::optional<std::future<void>> try_post(std::function<void()> job) override {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() >= capacity_) return std::nullopt;
    return accept(std::move(job));
  }

 private:
  std::future<void> accept(std::function<void()> job) {
    jobs_.emplace_back(std::move(job));
    changed_.notify_all();
    return jobs_.back().future();
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return closing_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      {
        auto job = std::move(jobs_.front());
        jobs_.pop_front();
        changed_.notify_all();
        lock.unlock();
        job.run();
      }
      lock.lock();
    }
  }

  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool closing_ = false;
  std::thread thread_;
};

class Inline : public Background {
 public:
  std::future<void> post(std::function<void()> job) override {
    Job at_once(std::move(job));
    at_once.run();
    return at_once.future();
  }
  std::optional<std::future<void>> try_post(std::function<void()> job) override { return post(std::move(job)); }
};

}  // namespace

std::unique_ptr<Background> make_background(const std::string& name, std::size_t capacity) {
  return std::make_unique<Worker>(name, capacity == 0 ? 1 : capacity);
}

std::unique_ptr<Background> make_inline_background() { return std::make_unique<Inline>(); }

namespace {
bool ready(const auto& job) {
  return job.valid() && job.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}
}  // namespace

bool is_done(const std::future<void>& job) { return ready(job); }
bool is_done(const std::shared_future<void>& job) { return ready(job); }

}  // namespace echelon
