#pragma once
// Messages between ranks through MPI. Each begins with a header (world/frame.h) as an MPI message of its own: short
// ones carry their bytes in it; the bytes of a longer one are sent under a tag that the header names and go straight to
// where they belong, once the receiver has found the place.
//
// MPI moves bytes only while somebody calls it: `progress` does, and who waits calls it again and again. Thread-safe:
// one lock for everything. (MPI itself holds back short messages that nobody receives, as many as memory allows.)

#include <deque>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "world/first_failure.h"
#include "world/frame.h"
#include "world/mpi/face.h"
#include "world/world.h"

namespace echelon::mpi {

constexpr std::size_t inline_bytes = 4096;  // in the header's message

class Mail;

struct Letter final : Operation {
  bool wait(double deadline) override;
  bool finished() override;
  void release() override;

  Mail* mail = nullptr;
  bool sends = false, done = false, mismatched = false, ended = false, dropped = false;
  Rank peer = 0;
  Channel channel = 0;
  Label label;
  std::size_t bytes = 0;
  const std::byte* from = nullptr;
  std::byte* into = nullptr;
  Sink sink;
  std::string problem;
  std::vector<EchelonMpiRequest> requests;  // what MPI still has to do
  std::vector<std::byte> buffer;            // header and short payload, or what a sink will get
};

class Mail {
 public:
  // `idle` is called while somebody waits, outside the lock, and may throw.
  Mail(EchelonMpiFace& face, FirstFailure& fate, Clock& clock, std::function<void()> idle);
  ~Mail();

  Work send(Rank to, Channel channel, const Label& label, std::span<const std::byte> bytes);
  Work receive(Rank from, Channel channel, const Label& label, std::byte* into, std::size_t bytes, Sink sink);
  void say(FrameKind kind, Rank to, std::string_view text, std::uint64_t sequence = 0);
  void progress();
  // Calls `progress` until the condition holds; false at the deadline.
  bool wait_for(double deadline, const std::function<bool()>& condition);
  bool all_have_ended();  // every other rank has said its last word
  bool nothing_left();    // to send

 private:
  friend struct Letter;
  struct Early {
    FrameHeader header;
    std::vector<std::byte> payload;
  };
  struct Lane {
    std::deque<Letter*> posted;
    std::deque<Early> early;
  };
  Lane& lane(Rank peer, Channel channel) { return lanes_[(std::uint64_t(std::uint32_t(peer)) << 32) | channel]; }
  Letter& take();
  void give_back(Letter& letter);
  void begin_send(Letter& letter, const FrameHeader& header, std::span<const std::byte> inline_payload);
  void listen();
  void handle(Rank from, std::span<const std::byte> message);
  void match(Letter& letter, const FrameHeader& header, std::span<const std::byte> payload);
  bool advance(Letter& letter);  // true when MPI has nothing more to do for it
  void progress_locked();

  EchelonMpiFace& face_;
  FirstFailure& fate_;
  Clock& clock_;
  std::function<void()> idle_;
  std::mutex mutex_;
  std::deque<Letter> all_;
  std::vector<Letter*> free_, active_;
  std::unordered_map<std::uint64_t, Lane> lanes_;
  std::vector<char> ended_;
  std::uint32_t next_tag_ = 0;
  EchelonMpiRequest listening_;
  std::vector<std::byte> heard_;
};

}  // namespace echelon::mpi
