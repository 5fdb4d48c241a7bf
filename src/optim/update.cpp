#include "optim/update.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "kernels/reduce.h"
#include "kernels/vector.h"

namespace echelon {

namespace {

constexpr std::size_t most_slots = 4;

void clamp(float* x, float limit, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] = x[i] > limit ? limit : x[i] < -limit ? -limit : x[i];  // keeps NaN
}

}  // namespace

Update::Update(std::unique_ptr<const Rule> rule, Clip clip, std::vector<TrainedSpan> segments,
               std::span<float> parameters, std::span<float> contributions, const Memory& memory, std::size_t held_from)
    : rule_(std::move(rule)),
      clip_(clip),
      segments_(std::move(segments)),
      parameters_(parameters),
      contributions_(contributions),
      held_from_(held_from) {
  invariant(parameters.size() == contributions.size(), "parameters and contributions have the same length");
  const std::vector<std::string> names = rule_->slots();
  invariant(names.size() <= most_slots, "a rule has few slots");
  auto get = [&]<typename T>(const std::string& name, std::size_t count, T) -> std::span<T> {
    std::span<std::byte> bytes;
    if (memory)
      bytes = memory(name, count * sizeof(T));
    else
      bytes = own_.emplace_back(count * sizeof(T)).as<std::byte>();
    return {reinterpret_cast<T*>(bytes.data()), count};
  };
  for (const std::string& name : names) slots_.push_back({name, get(name, parameters.size(), float{})});

  std::size_t end = 0;
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    const TrainedSpan& segment = segments_[s];
    first_block_.push_back(blocks_.size());
    const std::size_t last = segment.offset + segment.size;
    for (std::size_t at = segment.offset; at < last; at += block_size)
      blocks_.push_back({at, std::min(block_size, last - at), s});
    if (segment.elsewhere) continue;
    invariant(segment.offset >= end, "segments are in order and do not overlap");
    end = last;
  }
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const Block& block = blocks_[b];
    if (segments_[block.segment].elsewhere || block.offset < held_from || block.offset >= held_from + parameters.size())
      continue;
    invariant(block.offset + block.size <= held_from + parameters.size(), "what is held ends at a block's border");
    held_ = {held_.last == 0 ? b : held_.first, b + 1};
  }
  first_block_.push_back(blocks_.size());
  elements_before_.push_back(0);
  for (const Block& block : blocks_) elements_before_.push_back(elements_before_.back() + block.size);

  // What is preconditioned has to be summed up by all cores before: `measure` comes first then.
  if (clip_.norm > 0 || rule_->norm() == Rule::Norm::gradient || rule_->preconditions())
    phases_.push_back(Phase::measure);
  if (rule_->preconditions()) {
    phases_.push_back(Phase::precondition);
    if (held_.first > 0 || held_.last < blocks_.size())
      for (const TrainedSpan& s : segments_)
        if (!s.elsewhere && (s.offset < held_from || s.offset + s.size > held_from + parameters.size()))
          bad_input(
              "this update rule needs whole parameters, but a rank has ranges of them: leave out zero, or take "
              "momentum");
  }
  if (rule_->norm() == Rule::Norm::direction) phases_.push_back(Phase::direct);
  phases_.push_back(Phase::apply);
  if (phases_.size() > 1) {
    weight_squares_ = get("squares of weights", blocks_.size(), double{});
    other_squares_ = get("squares", blocks_.size(), double{});
  }
  trust_.assign(segments_.size(), 1);
}

Update::BlockRange Update::part(std::size_t core, std::size_t cores) const {
  const auto border = [&](std::size_t k) {
    const std::size_t elements = elements_before_.back() * k / cores;
    const auto it = std::lower_bound(elements_before_.begin(), elements_before_.end(), elements);
    return static_cast<std::size_t>(it - elements_before_.begin());
  };
  return {border(core), border(core + 1)};
}

void Update::run_alone(const StepScale& step) {
  begin(step);
  for (int phase = 0; phase < phases(); ++phase) run(phase, all()), fold(phase);
}

void Update::move_statistics() {
  step_.grad_scale = 1;
  for (const Block& block : blocks_)
    if (segments_[block.segment].statistic && !segments_[block.segment].elsewhere) move_statistic(block);
}

void Update::run(int phase, BlockRange range) {
  const Phase what = phases_[static_cast<std::size_t>(phase)];
  for (std::size_t i = range.first; i < range.last;) {
    const std::size_t index = i++;
    Block run = blocks_[index];
    // Elements do not depend on each other in the last phase: neighbouring blocks of a parameter go in one call.
    if (what == Phase::apply)
      for (; i < range.last && blocks_[i].segment == run.segment; ++i) run.size += blocks_[i].size;
    if (segments_[run.segment].elsewhere) continue;
    if (segments_[run.segment].statistic) {
      if (what == Phase::apply) move_statistic(run);
      continue;
    }
    if (phase == 0 && clip_.value > 0)
      clamp(contributions(run), static_cast<float>(clip_.value / step_.grad_scale), run.size);
    switch (what) {
      case Phase::measure: measure(run, index); break;
      case Phase::precondition: precondition(run, index); break;
      case Phase::direct: direct(run, index); break;
      case Phase::apply: apply(run); break;
    }
  }
}

void Update::measure(const Block& block, std::size_t index) {
  other_squares_[index] = kernels::squared_norm(contributions(block), block.size);
  if (rule_->norm() == Rule::Norm::gradient)
    weight_squares_[index] = kernels::squared_norm(parameters(block), block.size);
}

// By whoever has the parameter's first block.
void Update::precondition(const Block& block, std::size_t index) {
  const TrainedSpan& segment = segments_[block.segment];
  if (index != first_block_[block.segment] || segment.rows < 2 || segment.size / segment.rows < 2) return;
  std::array<float*, most_slots> slots;
  const Piece whole = piece(block, slots);
  rule_->precondition(
      clipped(block.segment),
      {.rows = segment.rows, .columns = segment.size / segment.rows, .gradient = whole.gradient, .slots = whole.slots});
}

void Update::direct(const Block& block, std::size_t index) {
  std::array<float*, most_slots> slots;
  rule_->direct(clipped(block.segment), piece(block, slots));
  weight_squares_[index] = kernels::squared_norm(parameters(block), block.size);
  other_squares_[index] = kernels::squared_norm(contributions(block), block.size);
}

void Update::apply(const Block& run) {
  std::array<float*, most_slots> slots;
  rule_->apply(clipped(run.segment), piece(run, slots));
}

void Update::move_statistic(const Block& run) {
  float* value = parameters(run);
  float* towards = contributions(run);
  kernels::scale(towards, towards, static_cast<float>(step_.grad_scale), run.size);
  kernels::lerp(value, value, towards, segments_[run.segment].rate, run.size);
}

Piece Update::piece(const Block& run, std::span<float*> slots) const {
  for (std::size_t i = 0; i < slots_.size(); ++i) slots[i] = slots_[i].values.data() + (run.offset - held_from_);
  return {.weights = parameters(run),
          .gradient = contributions(run),
          .slots = slots.first(slots_.size()),
          .size = run.size,
          .decays = segments_[run.segment].decays,
          .trust = trust_[run.segment],
          .offset = run.offset};
}

StepScale Update::clipped(std::size_t segment) const {
  return {step_.number, step_.lr * segments_[segment].lr_scale, step_.grad_scale * clip_scale_};
}

double Update::sum(std::span<const double> squares, std::size_t segment) const {
  double total = 0;
  for (std::size_t i = first_block_[segment]; i < first_block_[segment + 1]; ++i) total += squares[i];
  return total;
}

Update::Squares Update::squares(int phase) {
  const Phase what = phases_[static_cast<std::size_t>(phase)];
  if (what == Phase::apply || what == Phase::precondition) return {};
  return {weight_squares_, other_squares_};
}

void Update::fold(int phase) {
  const Phase what = phases_[static_cast<std::size_t>(phase)];
  if (what == Phase::apply || what == Phase::precondition) return;
  if (what == Phase::measure) {
    double total = 0;
    for (std::size_t s = 0; s < segments_.size(); ++s)
      if (!segments_[s].statistic) total += sum(other_squares_, s);
    gradient_norm_ = std::sqrt(total) * step_.grad_scale;
    if (clip_.norm > 0) clip_scale_ = std::min(1.0, clip_.norm / (gradient_norm_ + 1e-6));  // as torch has it
    if (rule_->norm() != Rule::Norm::gradient) return;
  }
  const double scale = what == Phase::measure ? step_.grad_scale * clip_scale_ : 1;  // `direct` has scaled already
  for (std::size_t s = 0; s < segments_.size(); ++s)
    if (segments_[s].decays && !segments_[s].statistic)
      trust_[s] = rule_->trust(std::sqrt(sum(weight_squares_, s)), std::sqrt(sum(other_squares_, s)) * scale);
}

}  // namespace echelon
