#pragma once
// A model that answers requests: they wait in a queue of bounded length; a worker takes as many as fit into a batch,
// waits a short while for more if there are few, runs the model on all of them at once and hands everyone his part. The
// answer to a sample has the same bits whatever is beside it: batches have sizes that agree with one another to the bit
// (models/answer_batch.h), which the constructor verifies on random samples.
//
// infer() may be called from many threads. The queue is bounded in samples, and in the time that they will take at the
// speed measured so far; what does not fit is refused at once (Busy). drain() lets what is queued be answered and
// refuses the rest; the destructor drains, too.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
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
  double queue_seconds = 0.05;   // and no more than can be run in this time; a request alone may always wait
  int workers = 1;               // cores that run batches
  double deadline_seconds = 30;  // after which a request that has not been run is given up
};

// The queue is full, or the server is going down: try again later, or elsewhere.
class Busy : public Failure {
  using Failure::Failure;
};

// The rows of one input or output of several samples, one after another.
using Rows = std::vector<std::byte>;

// An input or output of a request.
struct Field {
  std::string name;
  Type type;  // of one sample
  // A column of a table: its cells as text (serve/cells.h). `type` says nothing then.
  enum class Cells { none, numbers, words } cells = Cells::none;
};

// What stands between a request and a network that does not read what the run's data are: transforms, a table's rows.
struct Adapter {
  std::vector<Field> inputs;  // of a request
  // The network's inputs, by name. Thread-safe. BadInput for what cannot be read.
  std::function<std::map<std::string, Rows>(const std::vector<Rows>& rows, std::int64_t samples)> prepare;
  // Applied to the answers, by output: numbers in the units of the data. May be empty.
  std::map<std::string, std::function<void(Rows&)>> finish;
};

class Batcher {
 public:
  // Model, table and parameters must outlive the batcher. BadInput for a model that keeps a state between requests, or
  // that draws random numbers. Without an adapter a request has the network's own inputs.
  Batcher(const models::Model& model, const ParameterTable& table, std::span<float> parameters,
          const BatcherSettings& settings, Adapter adapter = {});
  ~Batcher();

  const std::vector<Field>& inputs() const { return adapter_.prepare ? adapter_.inputs : network_inputs_; }
  const std::vector<Field>& outputs() const { return outputs_; }

  // `rows[i]` belongs to inputs()[i] and has `samples` of them; the result is by output. Throws Busy, and BadInput for
  // what the network cannot read (an id that is too large), or answers with infinities.
  std::vector<Rows> infer(std::vector<Rows> rows, std::int64_t samples);
  void drain();

  const Latency& latency() const { return latency_; }
  std::int64_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  std::uint64_t accepted() const { return accepted_.load(std::memory_order_relaxed); }  // requests
  std::uint64_t samples() const { return samples_.load(std::memory_order_relaxed); }
  std::uint64_t batches() const { return batches_.load(std::memory_order_relaxed); }
  std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  void count_refusal() { ++refused_; }      // by somebody before it: the server has too many requests
  std::vector<std::int64_t> sizes() const;  // of the batches that are run

 private:
  struct Request;
  struct Runner;
  std::vector<Rows> network_rows(std::vector<Rows> rows, std::int64_t samples) const;
  void keep_sizes_that_agree();
  std::string why_busy(std::int64_t samples) const;  // empty: there is room
  void work();
  std::vector<std::shared_ptr<Request>> take_batch();
  void run(Runner& runner, std::span<const std::shared_ptr<Request>> batch);
  void run_piece(Runner& runner, const std::vector<Rows>& rows, std::int64_t first, std::int64_t count,
                 std::vector<Rows>& answers);

  const models::Model& model_;
  const ParameterTable& table_;
  std::span<float> parameters_;
  BatcherSettings settings_;
  Adapter adapter_;
  std::vector<Field> network_inputs_, outputs_;
  std::map<std::int64_t, Plan> plans_;  // by batch size

  Mutex mutex_;
  std::deque<std::shared_ptr<Request>> queue_;
  bool draining_ = false;
  std::unique_ptr<Event> arrived_;
  std::atomic<std::int64_t> waiting_{0};
  std::atomic<double> sample_seconds_{0};  // that one takes a worker, as the last batches went
  std::atomic<std::uint64_t> accepted_{0}, samples_{0}, batches_{0}, refused_{0};
  Latency latency_;
  std::vector<std::unique_ptr<Task>> workers_;
};

}  // namespace echelon::serve
