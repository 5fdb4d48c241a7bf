#pragma once
// Messages between ranks through MPI. Each begins with a header (world/transport/frame.h) as an MPI message of its own:
// short ones carry their bytes in it; the bytes of a longer one are sent under a tag that the header names and go
// straight to where they belong, once the receiver has found the place.
//
// MPI moves bytes only while somebody calls it: `progress` does, and who waits calls it again and again. Thread-safe:
// one lock for everything. (MPI itself holds back short messages that nobody receives, as many as memory allows.)

#include <deque>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "world/first_failure.h"
#include "world/transport/frame.h"
#include "world/transport/mpi/api.h"
#include "world/world.h"

namespace echelon::mpi {

constexpr std::size_t inline_bytes = 4096;  // in the header's message

class MpiTransport;

struct MpiOperation final : Operation {
  bool wait(double deadline) override;
  bool finished() override;
  void release() override;

  MpiTransport* transport = nullptr;
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

class MpiTransport {
 public:
  // `idle` is called while somebody waits, outside the lock, and may throw.
  MpiTransport(EchelonMpiApi& api, FirstFailure& failure, Clock& clock, std::function<void()> idle);
  ~MpiTransport();

  Work send(Rank to, Channel channel, const Label& label, std::span<const std::byte> bytes);
  Work receive(Rank from, Channel channel, const Label& label, std::byte* into, std::size_t bytes, Sink sink);
  void say(FrameKind kind, Rank to, std::string_view text, std::uint64_t sequence = 0);
  void progress();
  // Calls `progress` until the condition holds; false at the deadline.
  bool wait_for(double deadline, const std::function<bool()>& condition);
  bool all_have_ended();  // every other rank has said its last word
  bool nothing_left();    // to send

 private:
  friend struct MpiOperation;
  struct Early {
    FrameHeader header;
    std::vector<std::byte> payload;
  };
  struct ChannelState {
    std::deque<MpiOperation*> posted;
    std::deque<Early> early;
  };
  ChannelState& channel_state(Rank peer, Channel channel) {
    return channels_[(std::uint64_t(std::uint32_t(peer)) << 32) | channel];
  }
  MpiOperation& take();
  void give_back(MpiOperation& operation);
  void begin_send(MpiOperation& operation, const FrameHeader& header, std::span<const std::byte> inline_payload);
  void listen();
  void handle(Rank from, std::span<const std::byte> message);
  void match(MpiOperation& operation, const FrameHeader& header, std::span<const std::byte> payload);
  bool advance(MpiOperation& operation);  // true when MPI has nothing more to do for it
  void progress_locked();

  EchelonMpiApi& api_;
  FirstFailure& failure_;
  Clock& clock_;
  std::function<void()> idle_;
  std::mutex mutex_;
  std::deque<MpiOperation> all_;
  std::vector<MpiOperation*> free_, active_;
  std::unordered_map<std::uint64_t, ChannelState> channels_;
  std::vector<char> ended_;
  std::uint32_t next_tag_ = 0;
  EchelonMpiRequest listening_;
  std::vector<std::byte> heard_;
};

}  // namespace echelon::mpi
