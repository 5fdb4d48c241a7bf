#include "optim/schedule.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace echelon {

namespace {

constexpr double longest = 1e12;  // steps or epochs; keeps every sum of times exact

bool has_duration(OptionReader& r, const std::string& key) { return r.has(key + "_epochs") || r.has(key + "_steps"); }

void not_for(OptionReader& r, const std::string& name, const std::string& users,
             std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (r.has(key)) {
      r.problem(key, fmt::format("has no meaning for name = \"{}\"; it belongs to {}", name, users));
      r.ignore(key);
    }
}

void read_drops(OptionReader& r, ScheduleSpec& spec) {
  spec.drop = r.number("drop", 0.1, 0, 1);
  spec.every = read_duration(r, "every");
  for (const double epoch : r.numbers("at_epochs", {}, 0, longest)) spec.at.push_back({epoch, true});
  for (const double step : r.numbers("at_steps", {}, 0, longest)) spec.at.push_back({step, false});
  const int given = has_duration(r, "every") + r.has("at_epochs") + r.has("at_steps");
  if (given == 0)
    r.problem("every_epochs", "is missing: say when the rate drops; or at_epochs = [30, 60], every_steps, at_steps");
  if (given > 1) r.problem("name", "= \"step\" has several times to drop at; keep one of every_* and at_*");
  if (has_duration(r, "every") && spec.every.amount <= 0)
    r.problem(r.has("every_epochs") ? "every_epochs" : "every_steps", "must be more than 0");
}

Growth read_growth(OptionReader& r) {
  Growth growth;
  growth.factor = r.integer("factor", 2, 1, 1024);
  growth.every = read_duration(r, "every");
  growth.max_batch = r.integer("max_batch", std::int64_t{1} << 40, 1, std::int64_t{1} << 40);
  if (growth.every.amount <= 0) r.problem("every_epochs", "is missing: say how often the batch grows; or every_steps");
  if (growth.every.epochs && growth.every.amount != std::floor(growth.every.amount))
    r.problem("every_epochs", "must be a whole number: the batch grows between epochs");
  r.done();
  return growth;
}

}  // namespace

Duration read_duration(OptionReader& r, const std::string& key, Duration fallback) {
  const double epochs = r.number(key + "_epochs", fallback.amount, 0, longest);
  const std::int64_t steps =
      r.integer(key + "_steps", static_cast<std::int64_t>(fallback.amount), 0, static_cast<std::int64_t>(longest));
  if (r.has(key + "_epochs") && r.has(key + "_steps"))
    r.problem(key + "_steps", fmt::format("and {}_epochs are both given; keep one of them", key));
  if (!has_duration(r, key)) return fallback;
  return r.has(key + "_epochs") ? Duration{epochs, true} : Duration{static_cast<double>(steps), false};
}

std::vector<std::string> schedule_names() {
  return {"constant", "step", "cosine", "polynomial", "one_cycle", "plateau"};
}

ScheduleSpec read_schedule(OptionReader& r) {
  ScheduleSpec spec;
  spec.name = r.choice("name", "constant", schedule_names());
  spec.warmup = read_duration(r, "warmup");
  if (spec.name == "step") {
    read_drops(r, spec);
  } else {
    not_for(r, spec.name, "\"step\"", {"every_epochs", "every_steps", "at_epochs", "at_steps"});
    if (spec.name != "plateau") not_for(r, spec.name, "\"step\" and \"plateau\"", {"drop"});
  }
  if (spec.name == "cosine" || spec.name == "polynomial" || spec.name == "one_cycle") {
    spec.final = r.number("final", spec.name == "one_cycle" ? 4e-6 : 0, 0, 1);
  } else {
    not_for(r, spec.name, "\"cosine\", \"polynomial\" and \"one_cycle\"", {"final"});
  }
  if (spec.name == "one_cycle") {
    spec.rise = r.number("rise", 0.3, 0, 1);
    spec.start = r.number("start", 0.04, 0, 1);
    if (has_duration(r, "warmup"))
      r.problem(r.has("warmup_epochs") ? "warmup_epochs" : "warmup_steps",
                "has no meaning for name = \"one_cycle\", which rises by itself: set rise");
  } else {
    not_for(r, spec.name, "\"one_cycle\"", {"rise", "start"});
  }
  if (spec.name == "plateau") {
    spec.plateau = PlateauSpec{.drop = r.number("drop", 0.1, 0, 1),
                               .patience = r.integer("patience", 3, 0, 1 << 30),
                               .threshold = r.number("threshold", 1e-4, 0, 1),
                               .cooldown = r.integer("cooldown", 0, 0, 1 << 30),
                               .least = r.number("least", 0, 0, 1)};
  } else {
    not_for(r, spec.name, "\"plateau\"", {"patience", "threshold", "cooldown", "least"});
  }
  if (spec.name == "polynomial") {
    spec.power = r.number("power", 1, 0, 100);
  } else {
    not_for(r, spec.name, "\"polynomial\"", {"power"});
  }
  OptionReader growth = r.table("growth");
  if (r.has("growth")) spec.growth = read_growth(growth);
  r.done();
  return spec;
}

Schedule::Schedule(const ScheduleSpec& spec, double base_lr, std::int64_t total_steps,
                   const std::function<double(double)>& steps_in)
    : spec_(spec), base_lr_(base_lr), total_(static_cast<double>(total_steps)) {
  const auto steps = [&](const Duration& d) { return d.epochs ? steps_in(d.amount) : d.amount; };
  warmup_ = std::min(std::floor(steps(spec.warmup)), total_);
  for (const Duration& at : spec.at) drops_.push_back(steps(at));
  std::sort(drops_.begin(), drops_.end());
  // Epochs may take fewer and fewer steps when the batch grows, so the drops are not evenly spaced in steps.
  constexpr std::size_t most_drops = 1 << 16;
  if (spec.every.amount > 0)
    for (double n = 1; drops_.size() < most_drops; ++n) {
      const double at = steps({spec.every.amount * n, spec.every.epochs});
      if (at >= total_) break;
      drops_.push_back(at);
    }
}

double Schedule::shape(double step) const {
  if (spec_.name == "step") {
    const auto passed = std::upper_bound(drops_.begin(), drops_.end(), step) - drops_.begin();
    return std::pow(spec_.drop, static_cast<double>(passed));
  }
  constexpr double pi = 3.14159265358979323846;
  if (spec_.name == "one_cycle") {  // as torch has it: the highest rate at step rise * total - 1, the last at the end
    const auto half_cosine = [](double from, double to, double share) {
      return to + (from - to) * 0.5 * (1 + std::cos(pi * std::clamp(share, 0.0, 1.0)));
    };
    const double top = spec_.rise * total_ - 1, end = total_ - 1;
    if (step <= top) return half_cosine(spec_.start, 1, top > 0 ? step / top : 1);
    return half_cosine(1, spec_.final, end > top ? (step - top) / (end - top) : 1);
  }
  const double length = total_ - warmup_;
  const double progress = length > 0 ? std::clamp((step - warmup_) / length, 0.0, 1.0) : 1;
  if (spec_.name == "cosine") return spec_.final + (1 - spec_.final) * 0.5 * (1 + std::cos(pi * progress));
  if (spec_.name == "polynomial") return spec_.final + (1 - spec_.final) * std::pow(1 - progress, spec_.power);
  return 1;
}

double Schedule::lr(std::int64_t step) const {
  const double at = static_cast<double>(step);
  if (at < warmup_) return base_lr_ * (at + 1) / warmup_;  // the first step moves already; the last has the full rate
  return base_lr_ * shape(at);
}

std::vector<BatchStage> batch_stages(const Growth& growth, std::int64_t batch, std::int64_t samples) {
  invariant(batch >= 1 && samples >= 1, "batches and epochs have samples");
  std::vector<BatchStage> stages = {{0, batch}};
  if (growth.factor <= 1 || growth.every.amount < 1) return stages;
  for (;;) {
    const BatchStage last = stages.back();
    const std::int64_t next = last.batch * growth.factor;
    if (next > growth.max_batch || next > samples) return stages;
    const std::int64_t steps = growth.every.epochs ? (samples + last.batch - 1) / last.batch : 1;
    stages.push_back({last.step + static_cast<std::int64_t>(growth.every.amount) * steps, next});
  }
}

}  // namespace echelon
