#include "parallel/planned/ampnet_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "parallel/step/not_finite.h"
#include "world/mailbox/message_order.h"

namespace echelon {

namespace {

constexpr int inbox = 0;

}  // namespace

AmpnetEngine::AmpnetEngine(const EngineSettings& settings, Team& team)
    : PlannedEngine(settings, team), stage_(*stages_.front()), sum_(stage_.gradient().size()) {}

int AmpnetEngine::number_of(std::int64_t step, int shard) const {
  return static_cast<int>(step - range_->from) * layout_.shards() + shard;
}

Reached AmpnetEngine::run(const StepRange& range) {
  const double began = world_.now();
  const auto sent_before = world_.sent();
  waits_.begin();
  range_ = &range;
  mailbox_ = std::make_unique<Mailbox>(world_, sizeof(ShardLoss));
  if (order_) mailbox_->follow(*order_);
  wait_ = std::make_unique<MessageWait>(team_, *mailbox_);
  next_step_ = reported_ = range.from;
  next_shard_ = active_ = 0;
  over_ = stop_ = asked_ = false;
  updates_ = updates_before_run_ = range.from * layout_.shards() / layout_.plan().updates;

  while (!over_ || !forward_.empty() || !backward_.empty() || !under_way_.empty()) {
    take_messages();
    if (!backward_.empty()) {
      const Instance instance = backward_.front();
      backward_.pop_front();
      run_backward(instance);
    } else if (!forward_.empty()) {
      const Instance instance = forward_.front();
      forward_.pop_front();
      run_forward(instance);
    } else if (first() && !over_) {
      begin_next();
    }
  }
  if (summed_ > 0) update_stage(range.to - 1);
  const std::int64_t reached = next_step_;
  if (sent_before) sent_ += static_cast<double>(world_.sent()->bytes - sent_before->bytes);
  messages_->drain();
  mailbox_->close();
  wait_.reset(), mailbox_.reset();
  RankTimes all{.waiting_for = std::move(times_.waiting_for)};
  waits_.end(world_.now() - began, all);
  times_.compute += all.exchange;  // what was no wait
  times_.waiting_for = std::move(all.waiting_for);
  range_ = nullptr;
  return {reached, reached < range.to};
}

// Waits if there is nothing else to do.
void AmpnetEngine::take_messages() {
  const auto asks = [&] { return range_->asks_to_stop() || (order_ && order_->is_nearly_full()); };
  if (!asked_ && (order_ ? order_->learn(MessageOrder::stop_channel, asks()) != 0 : asks())) {
    asked_ = true;
    mailbox_->post(0, {.kind = wants_stop, .tag = inbox});
  }
  Message message;
  while (mailbox_->try_take(inbox, message)) sort_in(message);
  if (first()) report_steps();  // a result that has just come may be the last: then there is nothing to wait for
  const bool more = next_shard_ > 0 || (next_step_ < range_->to && !stop_);
  const bool begins = first() && (more ? active_ < layout_.plan().most_active() : active_ == 0 && steps_.empty());
  if (!forward_.empty() || !backward_.empty() || begins || over_) return;
  world_.set_status("whatever arrives first");
  wait_->take(inbox, message, "with a micro-batch", [this] { return first() ? world_.rank() + 1 : world_.rank() - 1; });
  sort_in(message);
}

void AmpnetEngine::sort_in(const Message& message) {
  const MessageHeader& head = message.head;
  if (head.kind == wants_stop) {
    stop_ = true;
  } else if (head.kind == end_of_run) {
    over_ = true;
    next_step_ = head.clock;
  } else if (head.kind == result) {
    ShardLoss loss;
    if (!first() || message.payload().size() != sizeof loss)
      fail("rank {} sent a result that makes no sense", message.from);
    std::memcpy(&loss, message.payload().data(), sizeof loss);
    StepOnTheWay& step = steps_.at(head.clock);
    step.loss += loss.loss, step.correct += loss.correct;
    --step.without_result;
  } else {
    const Instance instance{
        head.clock,
        static_cast<int>(head.key),
        {static_cast<std::int64_t>(head.second >> 32), static_cast<std::int64_t>(head.second & 0xffffffff)},
        static_cast<std::int64_t>(head.number)};
    if (instance.step < range_->from || instance.step >= range_->to || instance.shard >= layout_.shards())
      fail("rank {} sent a micro-batch of step {}, which is not under way", message.from, instance.step);
    (head.kind == forward_ready ? forward_ : backward_).push_back(instance);
  }
}

void AmpnetEngine::hand_on(Kind kind, const Instance& i, Rank to) {
  mailbox_->post(
      to, {.kind = kind,
           .tag = inbox,
           .key = static_cast<std::uint32_t>(i.shard),
           .clock = i.step,
           .number = static_cast<double>(i.batch),
           .second = static_cast<std::uint64_t>(i.size.samples) << 32 | static_cast<std::uint64_t>(i.size.length)});
}

// How many rows the longest sequence of a micro-batch has behind its padding; 0: all, or the model is for one length.
std::int64_t AmpnetEngine::length_of(const data::Batch& batch, int shard) const {
  const models::InputSpec& spec = settings_.model->inputs();
  if (!spec.left_padded) return 0;
  const auto& input = spec.input();
  const auto field = std::ranges::find(settings_.fields, input.name, &data::Field::name);
  const auto bytes =
      batch.field(static_cast<std::uint64_t>(shard), static_cast<std::size_t>(field - settings_.fields.begin()));
  const std::span<const float> values(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
  const auto rows = static_cast<std::size_t>(input.type.shape[0]), row = static_cast<std::size_t>(input.type.shape[1]);
  std::size_t first_row = rows - 1;  // a sequence has one row at least
  for (std::size_t at = 0; at < values.size(); at += rows * row)
    for (std::size_t r = 0; r < first_row; ++r)
      if (std::ranges::any_of(values.subspan(at + r * row, row), [](float v) { return v != 0; })) first_row = r;
  return first_row == 0 ? 0 : static_cast<std::int64_t>(rows - first_row);
}

void AmpnetEngine::begin_next() {
  if (next_shard_ == 0 && (next_step_ == range_->to || stop_)) {
    if (active_ > 0 || !steps_.empty()) return;
    for (Rank r = 1; r < world_.size(); ++r) mailbox_->post(r, {.kind = end_of_run, .tag = inbox, .clock = next_step_});
    over_ = true;
    return;
  }
  if (active_ == layout_.plan().most_active()) return;
  const data::Batch& batch = range_->loader->at(static_cast<std::uint64_t>(next_step_));
  StepOnTheWay& step = steps_[next_step_];
  if (next_shard_ == 0)
    step = {.samples = static_cast<std::int64_t>(batch.samples()),
            .to_do = layout_.shards(),
            .without_result = layout_.shards()};
  const int shard = next_shard_;
  const auto samples = static_cast<std::int64_t>(batch.samples_of(static_cast<std::uint64_t>(shard)).count);
  const Instance instance{next_step_, shard, {samples, samples > 0 ? length_of(batch, shard) : 0}, step.samples};
  if (++next_shard_ == layout_.shards()) next_shard_ = 0, ++next_step_;
  if (samples == 0) {  // an epoch's last batch
    --step.to_do, --step.without_result;
    return;
  }
  ++active_;
  run_forward(instance);
}

StepContext AmpnetEngine::context(const Instance& i) const {
  StepContext context{
      .seed = settings_.seed, .step = static_cast<std::uint32_t>(i.step), .communicator = messages_.get()};
  context.loss_scale = static_cast<float>(1.0 / (static_cast<double>(i.batch) * static_cast<double>(loss_terms_)));
  context.shard = static_cast<std::uint32_t>(i.shard);
  context.share = static_cast<float>(static_cast<double>(i.size.samples) / static_cast<double>(i.batch));
  return context;
}

void AmpnetEngine::run_forward(Instance i) {
  if (!plans_.has(i.size)) messages_->prepare(plans_.prepare(i.size, hosted_).placed.messages);
  batch_ = &range_->loader->at(static_cast<std::uint64_t>(i.step));
  const double slow = slowness(settings_.stragglers, world_.rank(), world_.size(), i.step, settings_.seed);
  i.updates_before = updates_;
  run_task({Pass::forward, stage_.stage(), number_of(i.step, i.shard)}, i.size, *batch_, context(i), slow);
  under_way_.emplace(number_of(i.step, i.shard), i);
  if (!last()) return hand_on(forward_ready, i, world_.rank() + 1);
  const ShardLoss& loss = losses_[static_cast<std::size_t>(i.shard)];
  mailbox_->post(0, {.kind = result, .tag = inbox, .clock = i.step}, std::as_bytes(std::span(&loss, 1)));
  run_backward(i);
}

void AmpnetEngine::run_backward(const Instance& arrived) {
  const int number = number_of(arrived.step, arrived.shard);
  const auto it = under_way_.find(number);
  if (it == under_way_.end()) fail("a gradient came back for a micro-batch that is not under way");
  const Instance i = it->second;
  under_way_.erase(it);
  const double slow = slowness(settings_.stragglers, world_.rank(), world_.size(), i.step, settings_.seed);
  run_task({Pass::backward, stage_.stage(), number}, i.size, *batch_, context(i), slow);
  if (!first()) hand_on(backward_ready, i, world_.rank() - 1);
  add_contribution(i);
  if (!first()) return;
  --active_;
  --steps_.at(i.step).to_do;
}

void AmpnetEngine::add_contribution(const Instance& i) {
  const std::span<const float> contribution = stage_.contribution();
  if (summed_ == 0)
    std::ranges::copy(contribution, sum_.begin());
  else
    std::ranges::transform(contribution, sum_, sum_.begin(), std::plus<>());
  ++summed_, summed_samples_ += i.size.samples, batch_of_sum_ = i.batch;
  ++gradients_, missed_ += static_cast<double>(updates_ - i.updates_before);
  if (summed_ == layout_.plan().updates) update_stage(i.step);
}

// Losses are divided by the samples of a whole batch; an update is the mean over those that it has.
void AmpnetEngine::update_stage(std::int64_t step) {
  const double began = world_.now();
  std::ranges::copy(sum_, stage_.gradient().begin());
  Update& update = stage_.update();
  update.begin({.number = ++updates_,
                .lr = range_->lr(step),
                .grad_scale = static_cast<double>(batch_of_sum_) / static_cast<double>(summed_samples_)});
  for (int phase = 0; phase < update.phases(); ++phase) {
    update.run(phase, update.all());
    update.fold(phase);
  }
  ++all_updates_;
  summed_ = summed_samples_ = 0;
  watch_.span({"update", began, world_.now()});
}

// In their order, when all of a step has come back and the last stage has told its losses.
void AmpnetEngine::report_steps() {
  for (auto it = steps_.begin(); it != steps_.end(); it = steps_.begin()) {
    const auto& [number, step] = *it;
    if (step.to_do > 0 || step.without_result > 0) return;
    if (!std::isfinite(step.loss))
      throw NotFinite(fmt::format(
          "step {}: the loss is not a number. Try a smaller optim.lr or fewer micro-batches at once (plan key "
          "active): gradients of older weights bear less than exact training",
          number));
    StepResult result{.correct = step.correct,
                      .samples = step.samples,
                      .terms = step.samples * loss_terms_,
                      .gradient_norm = stage_.update().gradient_norm()};
    if (step.samples > 0) result.loss = step.loss / static_cast<double>(result.terms);
    const std::int64_t done = number + 1;
    steps_.erase(it);
    range_->on_progress({done, result, -1});
  }
}

std::vector<Figure> AmpnetEngine::figures() {
  std::vector<Figure> figures = PlannedEngine::figures();
  int rank = 0;
  for (const double n : team_.all_gather_struct(all_updates_))
    figures.emplace_back(fmt::format("updates_rank_{}", rank++), n);
  rank = 0;
  for (const double m : team_.all_gather_struct(gradients_ > 0 ? missed_ / gradients_ : 0.0))
    figures.emplace_back(fmt::format("missed_updates_rank_{}", rank++), m);
  return figures;
}

}  // namespace echelon
