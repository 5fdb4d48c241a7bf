#pragma once
// Where a rank's letters (world/mail.h) are kept on their way. Private to mail.cpp (making, taking, closing),
// mail_out.cpp (what leaves) and mail_in.cpp (what comes). One lock guards the state, and is never held across a wait.

#include <array>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "world/channels.h"
#include "world/parcel.h"

namespace echelon {

// A letter's two messages, as their labels tell them apart.
enum LetterStep : std::uint16_t { header_step = 0, payload_step = 1 };
inline Label letter_label(std::uint32_t sequence, LetterStep step) { return {.step = step, .number = sequence}; }

class Mail::Office {
 public:
  Office(World& world, std::size_t most_bytes, const std::optional<std::vector<Rank>>& peers);
  ~Office();

  void post(Rank to, const LetterHead& head, std::span<const std::byte> payload);
  std::size_t on_their_way(Rank to);
  void leave_by_key(std::size_t window);
  bool try_take(int box, Letter& letter);
  bool take(int box, Letter& letter, double deadline);
  void shut(int box);
  void close(double patience);
  Counts sent() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  struct Box {
    ParcelQueue letters;
    bool shut = false;
    std::unique_ptr<Event> changed;
  };
  struct Peer {
    Rank rank = 0;
    bool writes = true;      // its goodbye has not come
    bool reading = true;     // by its reader
    std::uint32_t sent = 0;  // letters
    ParcelQueue on_their_way;
    // Its reader's: the letter that comes next.
    std::uint32_t sequence = 0;
    LetterOnTheWire wire;
    Parcel* parcel = nullptr;  // with its header, while the payload is on its way
    Work coming;
  };

  struct Waiting {  // to leave by its key
    Parcel* parcel;
    Peer* to;
    std::uint64_t number;
    bool operator<(const Waiting& o) const {  // as a heap wants it: the last one leaves first
      return std::tuple(o.parcel->wire.key, o.number) < std::tuple(parcel->wire.key, number);
    }
  };

  Box& box(int number) {
    invariant(number >= 0 && number < boxes, "a rank has that box");
    return boxes_[static_cast<std::size_t>(number)];
  }
  Peer* peer(Rank rank);
  bool next(int number, Letter& letter, bool& over, std::uint64_t& seen);
  void put_into_box(Parcel& parcel);
  Parcel& empty_parcel(std::size_t bytes);
  void send(Peer& to, Parcel& parcel);
  void reap(Peer& from);
  void send_by_key(std::size_t window);
  void collect(Peer& from, const Parcel& last);
  void give_back(Parcel& parcel);
  void tell_peers(LetterOnTheWire::What what);
  void wait_while(bool Peer::*state, double deadline);
  void wait_for_sender(double deadline, double patience);
  void stop();

  void read_all(Peer& from);
  void read_everybody();
  void expect_letter(Peer& from);
  bool take_what_came(Peer& from);  // false: it was the last
  void take_header(Peer& from);
  template <typename Waits>
  bool wait_for(const Waits& waits);  // false: the office closes without it
  bool wait(Work& work);              // the same
  void left(Peer& peer, bool Peer::*state);
  void meet(std::exception_ptr failure);

  World& world_;
  const std::size_t most_bytes_;
  const int exceptions_ = std::uncaught_exceptions();
  const std::shared_ptr<ParcelPool> pool_ = std::make_shared<ParcelPool>();

  // Guards everything below; never held while waiting, for in a simulated world tasks are not threads.
  mutable std::mutex mutex_;
  std::array<Box, boxes> boxes_;
  std::unique_ptr<Arrivals> arrivals_;  // of what all peers write; null: each has a reader of its own
  std::vector<Peer> peers_;             // by rank
  std::unique_ptr<Event> leaving_;      // a peer, or the last letter that waited for its turn
  std::exception_ptr failure_;
  Counts counts_;
  std::size_t window_ = 0;        // above 0: letters leave by key
  std::vector<Waiting> waiting_;  // a heap
  std::uint64_t numbered_ = 0;
  bool sending_ = false;           // the task that lets them leave is at it
  std::unique_ptr<Event> queued_;  // something waits to leave, or nothing will any more
  bool closing_ = false, closed_ = false, stopping_ = false;
  std::vector<std::unique_ptr<Task>> readers_;
  std::unique_ptr<Task> sender_;  // of what waits
};

}  // namespace echelon
