#pragma once
// One rank's wire to the switch, as world/wrappers/metered.h describes it, in front of a world that is faster.
//
// Out: a message goes into the inner world at once, and an empty marker message follows it on a channel of its own. A
// task (the link) sends the marker when the message's last byte would have left and travelled. So the time that the
// inner world itself needs passes while the bytes wait for the wire, and does not add to it. In: a message has arrived
// with its marker, and is reported when its last byte would have come in. From one sender alone it passes without
// delay, its bytes leaving one wire and coming in on the other at the same time; messages from several senders queue up
// for the wire of the receiver.
//
// Times are absolute: a wait that takes a little too long delays one message and not those after it.
//
// Thread-safe. Starting and finishing a message allocates nothing once the pool has grown.

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "world/wrappers/metered.h"

namespace echelon {

class LinkShaper {
 public:
  LinkShaper(World& inner, const LinkLimit& limit);
  ~LinkShaper();  // all its Works are gone

  Work send(Rank to, Channel channel, Label label, std::span<const std::byte> bytes);
  Work receive(Rank from, Channel channel, Label label, Work inner, std::size_t bytes);

 private:
  struct Shaped final : Operation {
    bool wait(double deadline) override { return shaper->wait(*this, deadline); }
    bool finished() override { return shaper->finished(*this); }
    void release() override { shaper->release(*this); }

    LinkShaper* shaper = nullptr;
    bool sends = false;
    Work inner, marker;
    std::byte marker_byte{};
    Shaped* next = nullptr;
    // A send
    Rank to = 0;
    Channel channel = 0;
    Label label;
    double leaves_at = 0;
    std::uint64_t ticket = 0;  // its number among all sends of the rank
    bool abandoned = false;    // while it waited to leave
    // A receive
    std::size_t size = 0;
    double not_before = 0;  // it had not arrived then
    double comes_at = 0;    // once it has arrived: when its last byte comes off the wire
    bool arrived = false;
  };

  Shaped& take();
  void give_back(Shaped& message);
  bool wait(Shaped& message, double deadline);
  bool finished(Shaped& message);
  bool wait_for_marker(Shaped& message, double deadline);
  void release(Shaped& message);
  void arrive(Shaped& message, double at);
  double seconds_for(std::size_t bytes) const;

  void run_link();
  void release_first(Shaped& message);
  void pause_until(double time);  // throws PeerLost if the world breaks meanwhile

  World& inner_;
  const LinkLimit limit_;
  std::unique_ptr<Event> queued_, left_;  // a message for the link; a message that has left

  std::mutex mutex_;  // guards what follows; never held while waiting
  std::deque<Shaped> pool_;
  Shaped* idle_ = nullptr;
  Shaped *first_ = nullptr, *last_ = nullptr;  // waiting to leave
  std::uint64_t tickets_ = 0, departed_ = 0;
  double out_free_ = 0, in_free_ = 0;  // when the wire has done all that it was given
  std::vector<Work> silences_;         // receives that nothing answers, for pauses
  std::byte nothing_{};
  bool stopping_ = false, broken_ = false;
  std::unique_ptr<Task> link_;
};

}  // namespace echelon
