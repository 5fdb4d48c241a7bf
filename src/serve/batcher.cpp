#include "serve/batcher.h"

#include <algorithm>
#include <cstring>

#include "world/os/tasks.h"
#include "world/os/wake_up.h"

namespace echelon::serve {

struct Batcher::Request {
  std::vector<Rows> rows, answers;
  std::int64_t samples = 0;
  double arrived = 0;
  std::string failure;
  std::unique_ptr<Event> done = make_thread_event();
};

// One worker's executors, a batch size each, bound on first use.
struct Batcher::Runner {
  struct Bound {
    Buffer arena;
    std::unique_ptr<Executor> executor;
  };
  std::map<std::int64_t, Bound> bound;

  Executor& at(std::int64_t size, const Batcher& b) {
    Bound& one = bound[size];
    if (!one.executor) {
      const Plan& plan = b.plans_.at(size);
      one.arena = Buffer(plan.memory.arena_bytes);
      one.executor =
          std::make_unique<Executor>(plan, b.table_, b.parameters_, std::span<float>{}, one.arena.as<std::byte>());
    }
    return *one.executor;
  }
};

namespace {

Type sample_type(const Type& type) { return {type.dtype, Shape(type.shape.dims().subspan(1)), Layout::plain}; }

}  // namespace

Batcher::Batcher(const models::Model& model, const ParameterTable& table, std::span<float> parameters,
                 const BatcherSettings& settings)
    : model_(model), table_(table), parameters_(parameters), settings_(settings), arrived_(make_thread_event()) {
  const Graph one = model_.prediction(1);
  if (!one.carries().empty())
    bad_input("{} carries a state from one step to the next, so requests cannot be answered one by one", model_.name());
  for (const Node& node : one.nodes())
    if (node.op->name() == "normal_noise" || node.op->name() == "route")
      bad_input("what {} says of a sample depends on more than the sample ({}), so it cannot be served", model_.name(),
                node.op->name());
  for (const Graph::Input& input : one.inputs()) inputs_.push_back({input.name, sample_type(one.type(input.value))});
  for (const auto& [name, value] : one.outputs()) {
    const Type& type = one.type(value);
    // Rows of a text's logits stand under each other, so many for a sample.
    outputs_.push_back({name, type.shape[0] == 1 ? sample_type(type) : type});
  }
  for (std::int64_t size = 1;; size = std::min(2 * size, settings_.batch)) {
    plans_.emplace(size, compile(model_.prediction(size)));
    if (size >= settings_.batch) break;
  }
  for (int i = 0; i < settings_.workers; ++i)
    workers_.push_back(spawn_thread(fmt::format("serve-{}", i), [this] { work(); }));
}

Batcher::~Batcher() { drain(); }

void Batcher::drain() {
  mutex_.take([&] { draining_ = true; });
  for (std::size_t i = 0; i < workers_.size(); ++i) arrived_->notify();
  workers_.clear();  // waits for them
}

std::vector<Rows> Batcher::infer(std::vector<Rows> rows, std::int64_t samples) {
  invariant(rows.size() == inputs_.size(), "a request has the model's inputs");
  if (samples < 1 || samples > settings_.batch)
    bad_input("a request has from 1 to {} samples, not {}", settings_.batch, samples);
  auto request = std::make_shared<Request>();
  request->rows = std::move(rows);
  request->samples = samples;
  request->arrived = monotonic_seconds();
  std::string busy;
  mutex_.take([&] {
    if (draining_)
      busy = "the server is going down";
    else if (waiting_ + samples > settings_.queue)
      busy = fmt::format("{} samples are waiting already", waiting_.load());
    else
      queue_.push_back(request), waiting_ += samples, ++accepted_;
  });
  if (!busy.empty()) {
    ++refused_;
    throw Busy(busy);
  }
  arrived_->notify();
  if (!request->done->wait(1, request->arrived + settings_.deadline_seconds)) throw Busy("no answer in time");
  if (!request->failure.empty()) fail("{}", request->failure);
  latency_.add(monotonic_seconds() - request->arrived);
  samples_ += static_cast<std::uint64_t>(samples);
  return std::move(request->answers);
}

// Empty: everything is answered and the server goes down.
std::vector<std::shared_ptr<Batcher::Request>> Batcher::take_batch() {
  std::vector<std::shared_ptr<Request>> batch;
  std::int64_t samples = 0;
  double until = 0;
  for (;;) {
    const std::uint64_t seen = arrived_->count();
    bool ending = false, full = false;
    mutex_.take([&] {
      while (!queue_.empty() && samples + queue_.front()->samples <= settings_.batch) {
        samples += queue_.front()->samples;
        waiting_ -= queue_.front()->samples;
        batch.push_back(std::move(queue_.front()));
        queue_.pop_front();
      }
      full = samples >= settings_.batch || !queue_.empty();
      ending = draining_;
    });
    const double now = monotonic_seconds();
    if (batch.empty()) {
      if (ending) return batch;
      arrived_->wait(seen + 1, now + 1);
      continue;
    }
    if (until == 0) until = now + settings_.window_seconds;
    if (full || ending || now >= until) return batch;
    arrived_->wait(seen + 1, until);
  }
}

void Batcher::run(Runner& runner, std::vector<std::shared_ptr<Request>>& batch) {
  std::int64_t samples = 0;
  for (const auto& r : batch) samples += r->samples;
  const std::int64_t size = plans_.lower_bound(samples)->first;
  Executor& e = runner.at(size, *this);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const std::span<std::byte> into = e.input(inputs_[i].name);
    std::size_t at = 0;
    for (const auto& r : batch) {
      std::memcpy(into.data() + at, r->rows[i].data(), r->rows[i].size());
      at += r->rows[i].size();
    }
    std::memset(into.data() + at, 0, into.size() - at);  // what fills the batch up
  }
  e.run({});
  for (const auto& r : batch) r->answers.resize(outputs_.size());
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    const std::span<const std::byte> all = e.output(outputs_[o].name);
    const std::size_t each = all.size() / static_cast<std::size_t>(size);
    std::size_t at = 0;
    for (const auto& r : batch) {
      const std::size_t bytes = each * static_cast<std::size_t>(r->samples);
      r->answers[o].assign(all.begin() + static_cast<std::ptrdiff_t>(at),
                           all.begin() + static_cast<std::ptrdiff_t>(at + bytes));
      at += bytes;
    }
  }
  ++batches_;
}

void Batcher::work() {
  Runner runner;
  for (;;) {
    auto batch = take_batch();
    if (batch.empty()) return;
    try {
      run(runner, batch);
    } catch (const std::exception& problem) {
      for (const auto& r : batch) r->failure = problem.what();
    }
    for (const auto& r : batch) r->done->notify();
  }
}

}  // namespace echelon::serve
