#pragma once
// A named background thread that runs jobs one after another, in the order in which they were posted, so that code
// above world/ needs no thread of its own. The queue is bounded; a caller that must not wait uses `try_post`.
//
// A job's failure is kept in its future and rethrown by `get()`; a future that is dropped drops the failure.
// Thread-safe: any thread may post. The destructor runs the jobs that were accepted, then ends the thread. What a job
// uses must outlive it. The thread receives no signals.

#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

namespace echelon {

class Background {
 public:
  virtual ~Background() = default;
  virtual std::future<void> post(std::function<void()> job) = 0;                     // waits while the queue is full
  virtual std::optional<std::future<void>> try_post(std::function<void()> job) = 0;  // nothing if the queue is full
};

// A thread of this process; `capacity` jobs may be waiting besides the one that runs.
std::unique_ptr<Background> make_background(const std::string& name, std::size_t capacity);

// Runs every job at once in the caller: for tests and for worlds that have one thread.
std::unique_ptr<Background> make_inline_background();

// Whether a job is done (then `get` does not wait).
bool is_done(const std::future<void>& job);
bool is_done(const std::shared_future<void>& job);

}  // namespace echelon
