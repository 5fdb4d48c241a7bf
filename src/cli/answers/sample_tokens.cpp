#include "cli/answers/sample_tokens.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "data/vocabulary.h"

namespace echelon::cli {

namespace {

Graph graph_of(const models::Model& model, bool cache, bool& cached) {
  if (cache)
    if (auto decoding = model.decoding(1)) {
      cached = true;
      return std::move(*decoding);
    }
  return model.prediction(1);
}

}  // namespace

std::int32_t draw_token(std::span<const float> scores, const Drawing& d, float uniform) {
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  auto better = [&](std::int32_t a, std::int32_t b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  };
  std::ranges::stable_sort(order, better);
  if (d.temperature <= 0) return order[0];
  if (d.top_k > 0 && static_cast<std::size_t>(d.top_k) < order.size()) order.resize(static_cast<std::size_t>(d.top_k));
  std::vector<double> weights;
  double all = 0;
  for (std::int32_t t : order) {
    weights.push_back(
        std::exp((scores[static_cast<std::size_t>(t)] - scores[static_cast<std::size_t>(order[0])]) / d.temperature));
    all += weights.back();
  }
  if (d.top_p < 1) {
    double kept = 0;
    std::size_t n = 0;
    while (n < weights.size() && (n == 0 || kept < d.top_p * all)) kept += weights[n++];
    order.resize(n), weights.resize(n);
    all = kept;
  }
  double left = uniform * all;
  for (std::size_t i = 0; i < order.size(); ++i)
    if ((left -= weights[i]) <= 0) return order[i];
  return order.back();
}

TokenScorer::TokenScorer(const models::Model& model, const ParameterTable& table, std::span<float> parameters,
                         bool cache)
    : context_(model.context()),
      input_(model.inputs().input().name),
      plan_(compile(graph_of(model, cache, cached_))),
      arena_(plan_.memory.arena_bytes),
      executor_(plan_, table, parameters, {}, std::span(arena_.data(), arena_.bytes())) {
  for (const auto& c : executor_.carries()) state_.emplace_back(c.from.size());
  restart();
}

TokenScorer::~TokenScorer() = default;

void TokenScorer::restart() {
  start_ = fed_ = 0;
  for (Buffer& b : state_) std::memset(b.data(), 0, b.bytes());
}

void TokenScorer::feed(std::int32_t token, std::int64_t position) {
  *reinterpret_cast<std::int32_t*>(executor_.input(input_).data()) = token;
  if (cached_)
    *reinterpret_cast<std::int32_t*>(executor_.input("position").data()) = static_cast<std::int32_t>(position);
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const auto& from = executor_.carries()[i].from;
    std::memcpy(from.data(), state_[i].data(), from.size());
  }
  executor_.run({});
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const auto& to = executor_.carries()[i].to;
    std::memcpy(state_[i].data(), to.data(), to.size());
  }
}

std::span<const float> TokenScorer::next(std::span<const std::int32_t> tokens) {
  std::size_t row = 0;
  if (!cached_ && !state_.empty()) {  // a state that knows no positions
    for (; fed_ < tokens.size(); ++fed_) feed(tokens[fed_], 0);
  } else {
    const auto room = static_cast<std::size_t>(context_);
    while (tokens.size() - start_ > room) {
      start_ += std::max<std::size_t>(1, room - room / 2);
      fed_ = start_;
    }
    if (cached_) {
      for (; fed_ < tokens.size(); ++fed_) feed(tokens[fed_], static_cast<std::int64_t>(fed_ - start_));
    } else {  // what follows the last token is masked
      auto* in = reinterpret_cast<std::int32_t*>(executor_.input(input_).data());
      std::fill_n(in, room, 0);
      std::ranges::copy(tokens.subspan(start_), in);
      row = tokens.size() - start_ - 1;
      executor_.run({});
    }
  }
  const auto logits = executor_.output("logits");
  const std::size_t rows = cached_ || !state_.empty() ? 1 : static_cast<std::size_t>(context_);
  const std::size_t vocabulary = logits.size() / sizeof(float) / rows;
  return {reinterpret_cast<const float*>(logits.data()) + row * vocabulary, vocabulary};
}

bool TextStream::write(std::string_view bytes) {
  text_ += bytes;
  std::size_t end = text_.size();
  bool stopped = false;
  for (const std::string& stop : stops_)
    if (const std::size_t at = text_.find(stop, printed_); at != std::string::npos && at < end) {
      end = at;
      stopped = true;
    }
  text_.resize(end);
  std::size_t safe = end;
  if (!stopped) {
    // The longest end of the text that a stop word begins with.
    for (const std::string& stop : stops_)
      for (std::size_t n = std::min(stop.size() - 1, end - printed_); n > 0; --n)
        if (std::string_view(text_).substr(end - n) == std::string_view(stop).substr(0, n)) {
          safe = std::min(safe, end - n);
          break;
        }
    safe = std::min(safe, printed_ + data::whole_characters(std::string_view(text_).substr(printed_, safe - printed_)));
  }
  if (safe > printed_) print_(std::string_view(text_).substr(printed_, safe - printed_));
  printed_ = std::max(printed_, safe);
  return !stopped;
}

void TextStream::finish() {
  if (printed_ < text_.size()) print_(std::string_view(text_).substr(printed_));
  printed_ = text_.size();
}

}  // namespace echelon::cli
