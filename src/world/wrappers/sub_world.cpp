#include "world/wrappers/sub_world.h"

#include <algorithm>

#include "base/error.h"

namespace echelon {

namespace {

class SubWorld final : public World {
 public:
  SubWorld(World& outer, std::vector<Rank> ranks, int number)
      : outer_(outer), ranks_(std::move(ranks)), number_(static_cast<Channel>(number) << 24) {
    const auto mine = std::ranges::find(ranks_, outer.rank());
    invariant(mine != ranks_.end() && number > 0 && number < 16, "a rank of its own sub-world, which has a number");
    const RankPlace& around = outer.place();
    std::vector<int> hosts;
    for (const Rank r : ranks_) hosts.push_back(around.host[static_cast<std::size_t>(r)]);
    place_ = {.world = around.world,
              .rank = static_cast<Rank>(mine - ranks_.begin()),
              .size = static_cast<int>(ranks_.size()),
              .host = hosts,
              .seed = around.seed,
              .threads = around.threads};
  }
  Rank outer_rank(Rank rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  const World& outer() const { return outer_; }

  std::optional<TrafficCount> sent() const override { return outer_.sent(); }
  const RankPlace& place() const override { return place_; }
  Clock& clock() override { return outer_.clock(); }
  void sleep(double seconds) override { outer_.sleep(seconds); }
  void compute(double flops) override { outer_.compute(flops); }
  Disk& disk() override { return outer_.disk(); }
  std::unique_ptr<Task> spawn(const std::string& name, std::function<void()> body) override {
    return outer_.spawn(name, std::move(body));
  }
  std::unique_ptr<Event> make_event() override { return outer_.make_event(); }
  std::unique_ptr<CompletionQueue> make_completion_queue() override { return outer_.make_completion_queue(); }
  Work send(Rank to, Channel channel, Label label, std::span<const std::byte> bytes) override {
    return outer_.send(outer_rank(to), channel ^ number_, label, bytes);
  }
  Work receive(Rank from, Channel channel, Label label, std::span<std::byte> into) override {
    return outer_.receive(outer_rank(from), channel ^ number_, label, into);
  }
  Work receive(Rank from, Channel channel, Label label, std::size_t bytes, Sink sink) override {
    return outer_.receive(outer_rank(from), channel ^ number_, label, bytes, sink);
  }
  SharedMemory* shared_memory() override { return nullptr; }
  void set_status(std::string_view activity) override { outer_.set_status(activity); }
  void set_waiting_for(Rank rank) override { outer_.set_waiting_for(rank < 0 ? rank : outer_rank(rank)); }
  RankStatus status_of(Rank rank) override {
    RankStatus status = outer_.status_of(outer_rank(rank));
    const auto member = std::ranges::find(ranks_, status.waiting_for);
    status.waiting_for = member == ranks_.end() ? -1 : static_cast<Rank>(member - ranks_.begin());
    return status;
  }
  void abort(std::string_view reason, FailureKind kind) override { outer_.abort(reason, kind); }

 private:
  World& outer_;
  const std::vector<Rank> ranks_;
  const Channel number_;  // xor with it: another channel for each
  RankPlace place_;
};

}  // namespace

std::unique_ptr<World> make_sub_world(World& outer, std::vector<Rank> ranks, int number) {
  return std::make_unique<SubWorld>(outer, std::move(ranks), number);
}

Rank rank_in_job(const World& world, Rank rank) {
  const auto* sub = dynamic_cast<const SubWorld*>(&world);
  return sub ? rank_in_job(sub->outer(), sub->outer_rank(rank)) : rank;
}

}  // namespace echelon
