#include "parallel/exchanges/gossip.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "parallel/composition.h"

namespace echelon::exchanges {

namespace {

enum GossipKind : std::uint16_t { gossip_weights, gossip_flush };

}  // namespace

std::size_t window_for(std::int64_t setting, std::size_t message_bytes) {
  if (setting > 0) return static_cast<std::size_t>(setting);
  return std::clamp<std::size_t>((1 << 20) / std::max<std::size_t>(message_bytes, 1), 1, 8);
}

ModelCoder::ModelCoder(const ExchangeParts& parts) : floats_(parts.floats()) {
  if (!parts.codec) return;
  codec_ = parts.codec(parts.pieces({0, floats_}));
  decoded_ = Buffer(floats_ * sizeof(float));
}

std::size_t ModelCoder::most_bytes() const { return codec_ ? codec_->most_bytes() : floats_ * sizeof(float); }

std::size_t ModelCoder::encode(std::span<const float> weights, const CodecStep& step, std::span<std::byte> out) {
  if (codec_) return codec_->encode(weights, step, out);
  std::memcpy(out.data(), weights.data(), weights.size_bytes());
  return weights.size_bytes();
}

std::span<const float> ModelCoder::decode(std::span<const std::byte> bytes, Rank from) {
  if (codec_) {
    codec_->decode(bytes, decoded_.as<float>());
    return decoded_.as<float>();
  }
  if (bytes.size() != floats_ * sizeof(float))
    fail("rank {} sent {} bytes of weights; the model has {}", from, bytes.size(), floats_ * sizeof(float));
  return {reinterpret_cast<const float*>(bytes.data()), floats_};
}

std::vector<StateSpan> ModelCoder::state() {
  std::vector<StateSpan> all;
  if (codec_) add_states(all, "codec ", codec_->state());
  return all;
}

void refuse_common_place(const Composition& c, Problems& problems) {
  refuse(problems, !c.rule->traits().peers,
         fmt::format("exchange {} is between equals, but rule {} needs a place where contributions meet: take rule "
                     "neighbour_mean or gossip_sum, or exchange server",
                     c.exchange_name, c.rule_name));
}

double checked_weight(double weight, Rank from) {
  if (!std::isfinite(weight) || weight < 0) fail("rank {} sent weights that count {:g}", from, weight);
  return weight;
}

Gossip::Gossip(ExchangeParts parts, Circle circle, std::int64_t window)
    : parts_(std::move(parts)),
      circle_(std::move(circle)),
      peer_(parts_.rule->make_peer(parts_.view())),
      coder_(parts_),
      window_(window_for(window, coder_.most_bytes())),
      bytes_(coder_.is_plain() ? 0 : coder_.most_bytes()),
      message_wait_(*parts_.team, *parts_.mailbox),
      flushed_(static_cast<std::size_t>(parts_.workers())) {
  to_.reserve(circle_.readers.size());
}

void Gossip::before_step(const StepInfo& info) {
  Message message;
  clock_ = info.clock;
  for (merged_ = 0; parts_.mailbox->try_take(worker_tag, message);) take(message, info.clock);
  peer_->gathered(parts_.trainer->parameters());
}

double Gossip::exchange(const StepInfo& info) {
  circle_.choose(exchanges_, parts_.random("peer", info.clock), to_);
  ++exchanges_;
  std::erase_if(to_, [&](Rank to) { return parts_.mailbox->on_their_way(to) >= window_; });
  if (to_.empty()) return 1;
  const std::int64_t clock = info.clock + 1;  // this step is done
  MessageHeader head{.kind = gossip_weights,
                     .tag = worker_tag,
                     .clock = clock,
                     .number = peer_->give(static_cast<int>(to_.size()), clock)};
  std::span<const std::byte> bytes = std::as_bytes(parts_.trainer->parameters());
  if (!coder_.is_plain()) {
    const CodecStep step{.number = exchanges_, .epoch = info.epoch, .random = parts_.random("codec", info.clock)};
    bytes = bytes_.as<std::byte>().first(coder_.encode(parts_.trainer->parameters(), step, bytes_.as<std::byte>()));
  }
  for (const Rank to : to_) parts_.mailbox->post(to, head, bytes);
  return 1;
}

void Gossip::take(const Message& message, std::int64_t clock) {
  if (message.head.kind == gossip_flush) {
    flushed_[static_cast<std::size_t>(message.from)] = 1;
    return;
  }
  if (message.head.kind != gossip_weights) fail("rank {} sent a message of kind {}", message.from, message.head.kind);
  const double weight = checked_weight(message.head.number, message.from);
  ++merged_;
  peer_->take(parts_.trainer->parameters(), coder_.decode(message.payload(), message.from),
              {.weight = weight, .mix = 1.0 / (merged_ + 1), .clock = clock, .sent_at = message.head.clock});
}

// A rank's flush comes after all that it has written.
void Gossip::drain() {
  for (const Rank to : circle_.readers) parts_.mailbox->post(to, {.kind = gossip_flush, .tag = worker_tag});
  const auto missing = [&] {
    const auto flushed = [&](Rank r) { return flushed_[static_cast<std::size_t>(r)] != 0; };
    const auto found = std::ranges::find(circle_.writers, false, flushed);
    return found == circle_.writers.end() ? -1 : *found;
  };
  for (merged_ = 0; missing() >= 0;) {
    Message message;
    message_wait_.take(worker_tag, message, "that is its last of the round", missing);
    take(message, clock_ + 1);
  }
  peer_->gathered(parts_.trainer->parameters());
  std::ranges::fill(flushed_, 0);
}

std::vector<StateSpan> Gossip::state() {
  std::vector<StateSpan> all = coder_.state();
  add_states(all, "peer ", peer_->state());
  all.push_back(as_state("exchanges", exchanges_));
  return all;
}

}  // namespace echelon::exchanges
