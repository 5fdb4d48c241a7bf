#include "parallel/server/factors.h"

#include <algorithm>
#include <cmath>

#include "kernels/vector.h"
#include "parallel/exchanges/factors.h"

namespace echelon::exchanges {

namespace {
constexpr float most_samples = 1 << 24;  // that a float can count
}

bool factors_are_smaller(const ThinProduct& p, std::size_t samples) {
  return samples * p.rows * (p.in + p.out) < p.in * p.out;
}

FactorMessage::FactorMessage(Range key, const std::vector<ThinProduct>& products) : key_(key) {
  for (std::size_t i = 0; i < products.size(); ++i)
    if (products[i].range.begin >= key.begin && products[i].range.end <= key.end) sections_.push_back({products[i], i});
  std::ranges::sort(sections_, {}, [](const Section& s) { return s.product.range.begin; });
  std::vector<Section> all;
  std::size_t at = key.begin;
  const auto plain_until = [&](std::size_t end) {
    if (end > at) all.push_back({{.name = {}, .range = {at, end}}, none});
  };
  for (const Section& s : sections_) {
    plain_until(s.product.range.begin);
    all.push_back(s);
    at = s.product.range.end;
  }
  plain_until(key.end);
  sections_ = std::move(all);
}

std::size_t FactorMessage::floats(std::size_t samples) const {
  std::size_t count = 1;
  for_each_part(samples, [&](const Part& p, const ThinProduct&) { count += p.count; });
  return count;
}

double FactorMessage::read(std::span<const float> message, std::span<float> out, Buffer& scratch) const {
  const float said = message.empty() ? -1 : message.back();
  if (!(said >= 0 && said <= most_samples && said == std::floor(said)))
    fail("a message with factors does not say of how many samples");
  const auto samples = static_cast<std::size_t>(said);
  if (message.size() != floats(samples))
    fail("a message with factors of {} samples has {} numbers, and should have {}", samples, message.size(),
         floats(samples));
  double flops = 0;
  for_each_part(samples, [&](const Part& part, const ThinProduct& p) {
    float* to = out.data() + (part.range.begin - key_.begin);
    if (part.product == none) return kernels::copy(to, message.data() + part.at, part.count);
    const std::size_t rows = samples * p.rows;
    const FactorRows place{.rows = rows, .errors = part.at, .inputs = part.at + rows * p.out};
    multiply_factors(p, std::span(&place, 1), message.data(), to, scratch);
    flops += 2.0 * static_cast<double>(rows) * static_cast<double>(part.range.count());
  });
  return flops;
}

FactorPushes::FactorPushes(ReplicaTrainer& trainer, std::span<const Key> keys) {
  const std::vector<ThinProduct> products = trainer.thin_products();
  for (const ThinProduct& p : products) places_.push_back({.product = p});
  for (const Key& key : keys) {
    messages_.emplace_back(key.range, products);
    values_.emplace_back(messages_.back().most_floats() * sizeof(float));
  }
  trainer.hooks().take_factors = [this](const ShardFactors& factors) { return take(factors); };
}

void FactorPushes::begin(std::size_t samples, double share) {
  invariant(static_cast<float>(samples) <= most_samples, "a worker's samples can be counted in a float");
  samples_ = samples, share_ = share;
  for (Place& p : places_) p.errors = p.inputs = nullptr;
  for (std::size_t k = 0; k < messages_.size(); ++k)
    messages_[k].for_each_part(samples, [&](const FactorMessage::Part& part, const ThinProduct& p) {
      if (part.product == FactorMessage::none) return;
      float* begin = values_[k].as<float>().data() + part.at;
      places_[part.product].errors = begin;
      places_[part.product].inputs = begin + samples * p.rows * p.out;
    });
}

// On the core that has computed them.
bool FactorPushes::take(const ShardFactors& factors) {
  const Place& place = places_[factors.product];
  if (!place.errors) return false;
  const ThinProduct& p = place.product;
  invariant(factors.first_row + factors.rows <= samples_ * p.rows,
            "factors are of the samples that the step began with");
  kernels::scale(place.errors + factors.first_row * p.out, factors.errors, static_cast<float>(share_),
                 factors.rows * p.out);
  kernels::copy(place.inputs + factors.first_row * p.in, factors.inputs, factors.rows * p.in);
  return true;
}

std::span<const float> FactorPushes::message(std::size_t key, WorkerSide& worker) {
  const std::span<float> values = values_[key].as<float>();
  messages_[key].for_each_part(samples_, [&](const FactorMessage::Part& part, const ThinProduct&) {
    if (part.product == FactorMessage::none) worker.contribute(part.range, share_, values.subspan(part.at, part.count));
  });
  const std::size_t count = messages_[key].floats(samples_);
  values[count - 1] = static_cast<float>(samples_);
  return values.first(count);
}

}  // namespace echelon::exchanges
