#include "serve/batcher.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.h"
#include "models/answer_batch.h"
#include "world/os/tasks.h"
#include "world/os/wake_up.h"

namespace echelon::serve {

struct Batcher::Request {
  std::vector<Rows> rows, answers;
  std::int64_t samples = 0;
  double arrived = 0;
  std::exception_ptr failure;
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

// Numbers such as a request may have; ids are 0 or 1, since nobody knows how many there are.
void fill_randomly(std::span<std::byte> into, DType type, std::uint32_t layer) {
  const Stream stream({.seed = 1, .step = 0, .shard = 0, .layer = layer});
  auto* numbers = reinterpret_cast<float*>(into.data());
  auto* ids = reinterpret_cast<std::int32_t*>(into.data());
  for (std::size_t i = 0; i < into.size() / sizeof(float); ++i) {
    const float x = 2 * stream.uniform(i) - 1;
    if (type == DType::f32)
      numbers[i] = x;
    else
      ids[i] = x < 0;
  }
}

bool all_finite(const Rows& rows) {
  for (std::size_t at = 0; at < rows.size(); at += sizeof(float)) {
    float x;
    std::memcpy(&x, rows.data() + at, sizeof x);
    if (!std::isfinite(x)) return false;
  }
  return true;
}

}  // namespace

Batcher::Batcher(const models::Model& model, const ParameterTable& table, std::span<float> parameters,
                 const BatcherSettings& settings, Adapter adapter)
    : model_(model),
      table_(table),
      parameters_(parameters),
      settings_(settings),
      adapter_(std::move(adapter)),
      arrived_(make_thread_event()) {
  const Graph one = model_.prediction(1);
  if (!one.carries().empty())
    bad_input("{} carries a state from one step to the next, so requests cannot be answered one by one", model_.name());
  for (const Node& node : one.nodes())
    if (node.op->name() == "normal_noise" || node.op->name() == "route")
      bad_input("what {} says of a sample depends on more than the sample ({}), so it cannot be served", model_.name(),
                node.op->name());
  for (const Graph::Input& input : one.inputs())
    network_inputs_.push_back({input.name, sample_type(one.type(input.value))});
  for (const auto& [name, value] : one.outputs()) {
    const Type& type = one.type(value);
    // Rows of a text's logits stand under each other, so many for a sample.
    outputs_.push_back({name, type.shape[0] == 1 ? sample_type(type) : type});
  }
  const std::int64_t most = models::answer_batch(settings_.batch);
  for (std::int64_t size = 1; size < models::answer_group; size *= 2)
    plans_.emplace(size, compile(model_.prediction(size)));
  for (std::int64_t size = models::answer_group;; size = std::min(2 * size, most)) {
    plans_.emplace(size, compile(model_.prediction(size)));
    if (size >= most) break;
  }
  keep_sizes_that_agree();
  for (int i = 0; i < settings_.workers; ++i)
    workers_.push_back(spawn_thread(fmt::format("serve-{}", i), [this] { work(); }));
}

// The smallest batches that predict runs decide. Of the others those stay that say the same to the bit, at their first
// and last places.
void Batcher::keep_sizes_that_agree() {
  Runner runner;
  std::map<std::string, Rows> first;
  const auto ask = [&](std::int64_t size) -> Executor& {
    Executor& e = runner.at(size, *this);
    for (std::size_t i = 0; i < network_inputs_.size(); ++i) {
      const std::span<std::byte> into = e.input(network_inputs_[i].name);
      const std::size_t each = network_inputs_[i].type.bytes();
      const std::size_t group = std::min(into.size(), each * static_cast<std::size_t>(models::answer_group));
      fill_randomly(into.first(group), network_inputs_[i].type.dtype, static_cast<std::uint32_t>(i));
      for (std::size_t at = group; at < into.size(); at += each)  // the same again and again
        std::memcpy(into.data() + at, into.data() + at - group, each);
    }
    e.run({});
    return e;
  };
  Executor& asked = ask(models::answer_group);
  for (const Field& f : outputs_) {
    const auto all = asked.output(f.name);
    first[f.name].assign(all.begin(), all.end());
  }
  for (auto it = plans_.begin(); it != plans_.end();) {
    Executor& other = ask(it->first);
    bool same = true;
    for (const Field& f : outputs_) {
      const Rows& want = first[f.name];
      const auto all = other.output(f.name);
      for (std::size_t at = 0; same && at < all.size(); at += want.size())
        same = std::memcmp(all.data() + at, want.data(), std::min(want.size(), all.size() - at)) == 0;
    }
    it = same ? std::next(it) : plans_.erase(it);
  }
}

std::vector<std::int64_t> Batcher::sizes() const {
  std::vector<std::int64_t> all;
  for (const auto& [size, plan] : plans_) all.push_back(size);
  return all;
}

Batcher::~Batcher() { drain(); }

void Batcher::drain() {
  mutex_.take([&] { draining_ = true; });
  for (std::size_t i = 0; i < workers_.size(); ++i) arrived_->notify();
  workers_.clear();  // waits for them
}

std::vector<Rows> Batcher::network_rows(std::vector<Rows> rows, std::int64_t samples) const {
  if (!adapter_.prepare) return rows;
  std::map<std::string, Rows> made = adapter_.prepare(rows, samples);
  std::vector<Rows> all;
  for (const Field& f : network_inputs_) {
    all.push_back(std::move(made[f.name]));
    invariant(all.back().size() == f.type.bytes() * static_cast<std::size_t>(samples), "the adapter makes every input");
  }
  return all;
}

std::string Batcher::why_busy(std::int64_t samples) const {
  if (draining_) return "the server is going down";
  if (waiting_ + samples > settings_.queue) return fmt::format("{} samples are waiting already", waiting_.load());
  const double seconds = static_cast<double>(waiting_) * sample_seconds_ / std::max(1, settings_.workers);
  if (waiting_ > 0 && seconds > settings_.queue_seconds)
    return fmt::format("the samples that are waiting already will take {:.0f} ms", 1e3 * seconds);
  return "";
}

std::vector<Rows> Batcher::infer(std::vector<Rows> rows, std::int64_t samples) {
  invariant(rows.size() == inputs().size(), "a request has the model's inputs");
  if (samples < 1 || samples > settings_.batch)
    bad_input("a request has from 1 to {} samples, not {}", settings_.batch, samples);
  auto request = std::make_shared<Request>();
  request->arrived = monotonic_seconds();
  request->rows = network_rows(std::move(rows), samples);
  request->samples = samples;
  std::string busy;
  mutex_.take([&] {
    busy = why_busy(samples);
    if (busy.empty()) queue_.push_back(request), waiting_ += samples, ++accepted_;
  });
  if (!busy.empty()) {
    ++refused_;
    throw Busy(busy);
  }
  arrived_->notify();
  if (!request->done->wait(1, request->arrived + settings_.deadline_seconds)) throw Busy("no answer in time");
  if (request->failure) std::rethrow_exception(request->failure);
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    if (!all_finite(request->answers[o]))
      bad_input("the network's answer has numbers that are not finite: what it was asked is far from what it knows");
    if (const auto finish = adapter_.finish.find(outputs_[o].name); finish != adapter_.finish.end())
      finish->second(request->answers[o]);
  }
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

void Batcher::run(Runner& runner, std::span<const std::shared_ptr<Request>> batch) {
  const double start = monotonic_seconds();
  std::int64_t samples = 0;
  for (const auto& r : batch) samples += r->samples;
  std::vector<Rows> rows(network_inputs_.size()), answers(outputs_.size());  // of all requests, one after the other
  for (const auto& r : batch)
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].insert(rows[i].end(), r->rows[i].begin(), r->rows[i].end());
  const std::int64_t most = plans_.rbegin()->first;
  for (std::int64_t first = 0; first < samples; first += most)
    run_piece(runner, rows, first, std::min(most, samples - first), answers);
  std::int64_t first = 0;
  for (const auto& r : batch) {
    r->answers.resize(outputs_.size());
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      const std::size_t each = answers[o].size() / static_cast<std::size_t>(samples);
      const auto from = answers[o].begin() + static_cast<std::ptrdiff_t>(each * static_cast<std::size_t>(first));
      r->answers[o].assign(from, from + static_cast<std::ptrdiff_t>(each * static_cast<std::size_t>(r->samples)));
    }
    first += r->samples;
  }
  ++batches_;
  const double each = (monotonic_seconds() - start) / static_cast<double>(samples), before = sample_seconds_;
  sample_seconds_ = before == 0 ? each : 0.8 * before + 0.2 * each;
}

// `count` samples from `first` on, filled up with zeros; appends what the network says.
void Batcher::run_piece(Runner& runner, const std::vector<Rows>& rows, std::int64_t first, std::int64_t count,
                        std::vector<Rows>& answers) {
  const std::int64_t size = plans_.lower_bound(count)->first;
  Executor& e = runner.at(size, *this);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::span<std::byte> into = e.input(network_inputs_[i].name);
    const std::size_t each = network_inputs_[i].type.bytes(), bytes = each * static_cast<std::size_t>(count);
    std::memcpy(into.data(), rows[i].data() + each * static_cast<std::size_t>(first), bytes);
    std::memset(into.data() + bytes, 0, into.size() - bytes);
  }
  e.run({});
  for (std::size_t o = 0; o < answers.size(); ++o) {
    const std::span<const std::byte> all = e.output(outputs_[o].name);
    const std::size_t bytes = all.size() / static_cast<std::size_t>(size) * static_cast<std::size_t>(count);
    answers[o].insert(answers[o].end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(bytes));
  }
}

void Batcher::work() {
  Runner runner;
  for (;;) {
    auto batch = take_batch();
    if (batch.empty()) return;
    try {
      run(runner, batch);
    } catch (const std::exception&) {
      // What is wrong with one request is not to be told to the others: each by itself.
      for (const auto& r : batch) try {
          run(runner, std::span(&r, 1));
        } catch (const std::exception&) {
          r->failure = std::current_exception();
        }
    }
    for (const auto& r : batch) r->done->notify();
  }
}

}  // namespace echelon::serve
