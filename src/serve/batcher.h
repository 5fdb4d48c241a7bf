#pragma once
// A model that answers requests: they wait in a queue of bounded length; a worker takes as many as fit into a batch,
// waits a short while for more if there are few, runs the model on all of them at once and hands everyone his part. The
// answer to a sample does not depend on the samples beside it.
//
// infer() may be called from many threads. The queue is counted in samples; what does not fit is refused at once
// (Busy). drain() lets what is queued be answered and refuses the rest; the destructor drains, too.

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/program.h"
#include "models/model.h"
#include "serve/latency.h"
#include "world/os/mutex.h"
#include "world/world.h"

namespace echelon::serve {

struct BatcherSettings {
  std::int64_t batch = 32;       // samples at most in one run
  double window_seconds = 5e-4;  // how long a batch that is not full waits for more
  std::int64_t queue = 256;      // samples at most that wait
  int workers = 1;               // cores that run batches
  double deadline_seconds = 30;  // after which a request that has not been run is given up
};

// The queue is full, or the server is going down: try again later, or elsewhere.
class Busy : public Failure {
  using Failure::Failure;
};

// The rows of one input or output of several samples, one after another.
using Rows = std::vector<std::byte>;

class Batcher {
 public:
  // Model, table and parameters must outlive the batcher. BadInput for a model that keeps a state between requests, or
  // that draws random numbers.
  Batcher(const models::Model& model, const ParameterTable& table, std::span<float> parameters,
          const BatcherSettings& settings);
  ~Batcher();

  struct Field {
    std::string name;
    Type type;  // of one sample
  };
  const std::vector<Field>& inputs() const { return inputs_; }
  const std::vector<Field>& outputs() const { return outputs_; }

  // `rows[i]` belongs to inputs()[i] and has `samples` of them; the result is by output. Throws Busy.
  std::vector<Rows> infer(std::vector<Rows> rows, std::int64_t samples);
  void drain();

  const Latency& latency() const { return latency_; }
  std::int64_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  std::uint64_t accepted() const { return accepted_.load(std::memory_order_relaxed); }  // requests
  std::uint64_t samples() const { return samples_.load(std::memory_order_relaxed); }
  std::uint64_t batches() const { return batches_.load(std::memory_order_relaxed); }
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Request;
  struct Runner;
  void work();
  std::vector<std::shared_ptr<Request>> take_batch();
  void run(Runner& runner, std::vector<std::shared_ptr<Request>>& batch);

  const models::Model& model_;
  const ParameterTable& table_;
  std::span<float> parameters_;
  BatcherSettings settings_;
  std::vector<Field> inputs_, outputs_;
  std::map<std::int64_t, Plan> plans_;  // by batch size: 1, 2, 4, ...

  Mutex mutex_;
  std::deque<std::shared_ptr<Request>> queue_;
  bool draining_ = false;
  std::unique_ptr<Event> arrived_;
  std::atomic<std::int64_t> waiting_{0};
  std::atomic<std::uint64_t> accepted_{0}, samples_{0}, batches_{0}, refused_{0};
  Latency latency_;
  std::vector<std::unique_ptr<Task>> workers_;
};

}  // namespace echelon::serve
