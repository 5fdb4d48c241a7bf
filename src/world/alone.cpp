#include "world/alone.h"

#include "world/os/machine_world.h"

namespace echelon {

namespace {

class Alone : public MachineWorld {
 public:
  explicit Alone(std::uint64_t seed) : place_{.world = "alone", .host = {0}, .seed = seed} {}

  const RankPlace& place() const override { return place_; }
  Work send(Rank, Channel, Label label, std::span<const std::byte>) override { return nobody(label); }
  Work receive(Rank, Channel, Label label, std::span<std::byte>) override { return nobody(label); }
  Work receive(Rank, Channel, Label label, std::size_t, Sink) override { return nobody(label); }
  SharedMemory* shared_memory() override { return nullptr; }
  void set_status(std::string_view) override {}
  void set_waiting_for(Rank) override {}
  RankStatus status_of(Rank) override { return {}; }
  void abort(std::string_view, FailureKind) override {}

 private:
  static Work nobody(const Label& label) { fail("{}: there is no other rank", to_string(label)); }

  RankPlace place_;
};

}  // namespace

std::unique_ptr<World> make_world_alone(std::uint64_t seed) { return std::make_unique<Alone>(seed); }

}  // namespace echelon
