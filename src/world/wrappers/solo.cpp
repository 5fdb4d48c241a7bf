#include "world/wrappers/solo.h"

namespace echelon {

namespace {

class Solo : public World {
 public:
  explicit Solo(World& inner) : inner_(inner), place_(inner.place()) {
    place_.rank = 0;
    place_.size = 1;
    place_.host = {0};
  }
  const RankPlace& place() const override { return place_; }
  Clock& clock() override { return inner_.clock(); }
  void sleep(double seconds) override { inner_.sleep(seconds); }
  void compute(double flops) override { inner_.compute(flops); }
  Disk& disk() override { return inner_.disk(); }
  std::unique_ptr<Task> spawn(const std::string& name, std::function<void()> body) override {
    return inner_.spawn(name, std::move(body));
  }
  std::unique_ptr<Event> make_event() override { return inner_.make_event(); }
  Work send(Rank, Channel, Label label, std::span<const std::byte>) override { nobody(label); }
  Work receive(Rank, Channel, Label label, std::span<std::byte>) override { nobody(label); }
  Work receive(Rank, Channel, Label label, std::size_t, Sink) override { nobody(label); }
  SharedMemory* shared_memory() override { return nullptr; }
  void set_status(std::string_view activity) override { inner_.set_status(activity); }
  void set_waiting_for(Rank rank) override { inner_.set_waiting_for(rank); }
  RankStatus status_of(Rank) override { return inner_.status_of(inner_.rank()); }
  void abort(std::string_view reason) override { inner_.abort(reason); }

 private:
  [[noreturn]] static void nobody(const Label& label) { fail("{}: there is no other rank", to_string(label)); }

  World& inner_;
  RankPlace place_;
};

}  // namespace

std::unique_ptr<World> make_solo(World& inner) { return std::make_unique<Solo>(inner); }

}  // namespace echelon
