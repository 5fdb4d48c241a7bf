#include "parallel/server/push_chain.h"

#include <algorithm>
#include <numeric>

namespace echelon::exchanges {

namespace {

std::unique_ptr<PushStage> first_stage(const PushParts& parts) {
  if (parts.parts.when.n_push > 1) return merge_stage(parts);
  if (parts.parts.order.by_magnitude) return budget_stage(parts);
  if (parts.settings.factors) return factor_stage(parts);
  return contribution_stage(parts);
}

}  // namespace

std::size_t largest_key(std::span<const Key> keys) {
  std::size_t largest = 0;
  for (const Key& key : keys) largest = std::max(largest, key.range.count());
  return largest;
}

PushChain::PushChain(const PushParts& parts) : key_count_(parts.keys.size()) {
  stages_.push_back(first_stage(parts));
  if (!parts.codecs.empty()) stages_.push_back(codec_stage(parts));
  if (parts.settings.filters.any()) stages_.push_back(filter_stage(parts));
}

void PushChain::begin_step(const StepInfo& info) {
  for (const auto& stage : stages_) stage->begin_step(info);
}

const std::vector<std::uint32_t>& PushChain::collect(const StepInfo& info) {
  keys_.resize(key_count_);
  std::iota(keys_.begin(), keys_.end(), 0u);
  for (const auto& stage : stages_) {
    stage->collect(info);
    stage->choose(keys_);
  }
  return keys_;
}

const std::vector<std::uint32_t>& PushChain::left_over() {
  keys_.clear();
  for (const auto& stage : stages_) stage->left_over(keys_);
  return keys_;
}

void PushChain::process(Push& push) {
  for (const auto& stage : stages_) stage->process(push);
}

std::vector<StateSpan> PushChain::state() {
  std::vector<StateSpan> all;
  for (const auto& stage : stages_) add_states(all, "", stage->state());
  return all;
}

std::unique_ptr<PushDecoder> make_push_decoder(const DecoderParts& parts) {
  if (parts.settings.filters.any()) return filter_decoder(parts);
  if (parts.settings.factors) return factor_decoder(parts);
  return parts.parts.codec ? codec_decoder(parts) : plain_decoder(parts);
}

}  // namespace echelon::exchanges
