#include "world/wrappers/metered.h"

#include <atomic>
#include <mutex>

#include "world/wrappers/link_shaper.h"
#include "world/wrappers/recorder.h"

namespace echelon {

namespace {

class Metered : public World {
 public:
  Metered(World& inner, const LinkLimit& limit)
      : inner_(inner),
        to_(inner.size() <= most_peers_counted ? static_cast<std::size_t>(inner.size()) : std::size_t{0}) {
    if ((limit.bytes_per_second > 0 || limit.latency > 0) && inner.size() > 1)
      link_ = std::make_unique<LinkShaper>(inner, limit);
  }
  std::optional<TrafficCount> sent() const override { return TrafficCount{messages_, bytes_}; }
  void record_in(EventRing* ring) { ring_ = ring; }
  std::vector<std::uint64_t> bytes_to() const { return {to_.begin(), to_.end()}; }
  void keep(std::size_t most) {
    const std::lock_guard lock(mutex_);
    kept_.reserve(most);
    keeps_ = most;
  }
  std::vector<SentMessage> kept() {
    const std::lock_guard lock(mutex_);
    return kept_;
  }
  const RankPlace& place() const override { return inner_.place(); }
  Clock& clock() override { return inner_.clock(); }
  void sleep(double seconds) override { inner_.sleep(seconds); }
  void compute(double flops) override { inner_.compute(flops); }
  Disk& disk() override { return inner_.disk(); }
  std::unique_ptr<Task> spawn(const std::string& name, std::function<void()> body) override {
    return inner_.spawn(name, std::move(body));
  }
  std::unique_ptr<Event> make_event() override { return inner_.make_event(); }
  std::unique_ptr<CompletionQueue> make_completion_queue() override {
    return link_ ? nullptr : inner_.make_completion_queue();
  }
  Work send(Rank to, Channel channel, Label label, std::span<const std::byte> bytes) override {
    if (to == rank()) return inner_.send(to, channel, label, bytes);
    if (ring_) ring_->message(true, label, to, bytes.size());
    messages_.fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(bytes.size(), std::memory_order_relaxed);
    if (!to_.empty()) to_[static_cast<std::size_t>(to)].fetch_add(bytes.size(), std::memory_order_relaxed);
    if (keeps_ > 0) note({inner_.now(), bytes.size(), to, label.kind});
    return link_ ? link_->send(to, channel, label, bytes) : inner_.send(to, channel, label, bytes);
  }
  Work receive(Rank from, Channel channel, Label label, std::span<std::byte> into) override {
    return over_link(from, channel, label, inner_.receive(from, channel, label, into), into.size());
  }
  Work receive(Rank from, Channel channel, Label label, std::size_t bytes, Sink sink) override {
    return over_link(from, channel, label, inner_.receive(from, channel, label, bytes, sink), bytes);
  }
  SharedMemory* shared_memory() override { return link_ ? nullptr : inner_.shared_memory(); }
  void set_status(std::string_view activity) override {
    if (ring_) ring_->set_activity(activity);
    inner_.set_status(activity);
  }
  void set_waiting_for(Rank rank) override {
    if (ring_) ring_->set_waiting_for(rank);
    inner_.set_waiting_for(rank);
  }
  RankStatus status_of(Rank rank) override { return inner_.status_of(rank); }
  void abort(std::string_view reason, FailureKind kind) override { inner_.abort(reason, kind); }

 private:
  void note(const SentMessage& message) {
    const std::lock_guard lock(mutex_);
    if (kept_.size() < keeps_) kept_.push_back(message);
  }
  Work over_link(Rank from, Channel channel, Label label, Work inner, std::size_t bytes) {
    if (ring_ && from != rank()) ring_->message(false, label, from, bytes);
    if (!link_ || from == rank()) return inner;
    return link_->receive(from, channel, label, std::move(inner), bytes);
  }

  World& inner_;
  std::atomic<std::uint64_t> messages_ = 0, bytes_ = 0;
  std::vector<std::atomic<std::uint64_t>> to_;  // bytes, by rank
  std::atomic<std::size_t> keeps_ = 0;          // so many messages at most
  std::mutex mutex_;                            // of kept_
  std::vector<SentMessage> kept_;
  std::unique_ptr<LinkShaper> link_;
  EventRing* ring_ = nullptr;  // null: nothing is recorded
};

}  // namespace

std::unique_ptr<World> make_metered(World& inner, const LinkLimit& limit) {
  return std::make_unique<Metered>(inner, limit);
}

std::vector<std::uint64_t> bytes_to_peers(const World& world) {
  const auto* metered = dynamic_cast<const Metered*>(&world);
  return metered ? metered->bytes_to() : std::vector<std::uint64_t>();
}

void keep_messages(World& world, std::size_t most) {
  if (auto* metered = dynamic_cast<Metered*>(&world)) metered->keep(most);
}

std::vector<SentMessage> kept_messages(World& world) {
  auto* metered = dynamic_cast<Metered*>(&world);
  return metered ? metered->kept() : std::vector<SentMessage>();
}

void record_events(World& world, EventRing* ring) {
  if (auto* metered = dynamic_cast<Metered*>(&world)) metered->record_in(ring);
}

}  // namespace echelon
