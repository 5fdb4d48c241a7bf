#include "world/alone.h"

#include "world/os/tasks.h"

namespace echelon {

namespace {

class Alone : public World {
 public:
  explicit Alone(std::uint64_t seed) : place_{.world = "alone", .host = {0}, .seed = seed} {}

  const RankPlace& place() const override { return place_; }
  Clock& clock() override { return *clock_; }
  void sleep(double seconds) override { sleep_really(seconds); }
  void compute(double) override {}
  Disk& disk() override { return *disk_; }
  std::unique_ptr<Task> spawn(const std::string& name, std::function<void()> body) override {
    return spawn_thread(name, std::move(body));
  }
  std::unique_ptr<Event> make_event() override { return make_thread_event(); }
  Work send(Rank, Channel, Label label, std::span<const std::byte>) override { return nobody(label); }
  Work receive(Rank, Channel, Label label, std::span<std::byte>) override { return nobody(label); }
  Work receive(Rank, Channel, Label label, std::size_t, Sink) override { return nobody(label); }
  SharedMemory* shared_memory() override { return nullptr; }
  void set_status(std::string_view) override {}
  void set_waiting_for(Rank) override {}
  RankStatus status_of(Rank) override { return {}; }
  void abort(std::string_view) override {}

 private:
  static Work nobody(const Label& label) { fail("{}: there is no other rank", to_string(label)); }

  RankPlace place_;
  std::unique_ptr<Clock> clock_ = make_real_clock();
  std::unique_ptr<Disk> disk_ = make_real_disk();
};

}  // namespace

std::unique_ptr<World> make_world_alone(std::uint64_t seed) { return std::make_unique<Alone>(seed); }

}  // namespace echelon
