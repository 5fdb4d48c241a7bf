#include "world/metered.h"

#include "base/error.h"

namespace echelon {

namespace {

class Metered : public MeteredWorld {
 public:
  explicit Metered(World& inner) : inner_(inner) {}
  TrafficCount sent() const override { return {messages_, bytes_}; }
  const RankPlace& place() const override { return inner_.place(); }
  Clock& clock() override { return inner_.clock(); }
  void sleep(double seconds) override { inner_.sleep(seconds); }
  void compute(double flops) override { inner_.compute(flops); }
  Disk& disk() override { return inner_.disk(); }
  std::unique_ptr<Task> spawn(const std::string& name, std::function<void()> body) override {
    return inner_.spawn(name, std::move(body));
  }
  std::unique_ptr<Event> make_event() override { return inner_.make_event(); }
  Work send(Rank to, Channel channel, Label label, std::span<const std::byte> bytes) override {
    if (to != rank()) ++messages_, bytes_ += bytes.size();
    return inner_.send(to, channel, label, bytes);
  }
  Work receive(Rank from, Channel channel, Label label, std::span<std::byte> into) override {
    return inner_.receive(from, channel, label, into);
  }
  Work receive(Rank from, Channel channel, Label label, std::size_t bytes, Sink sink) override {
    return inner_.receive(from, channel, label, bytes, sink);
  }
  SharedMemory* shared_memory() override { return inner_.shared_memory(); }
  void doing(std::string_view what) override { inner_.doing(what); }
  std::string doing_of(Rank rank) override { return inner_.doing_of(rank); }
  void give_up(std::string_view reason) override { inner_.give_up(reason); }

 private:
  World& inner_;
  std::atomic<std::uint64_t> messages_ = 0, bytes_ = 0;
};

}  // namespace

std::unique_ptr<MeteredWorld> make_metered(World& inner, const LinkLimit& limit) {
  if (limit.bytes_per_second > 0) fail("a limited link needs the link's own task");
  return std::make_unique<Metered>(inner);
}

}  // namespace echelon
