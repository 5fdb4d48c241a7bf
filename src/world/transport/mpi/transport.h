#pragma once
// Sends and receives between ranks through MPI. Each message begins with a header (world/transport/frame.h) as an MPI
// message of its own: a short message's bytes are in it; the bytes of a longer one are sent under a tag that the header
// names, and MPI puts them straight into the receiver's memory once the receive has begun.
//
// MPI moves bytes only while it is called: `progress` does so, and a task that waits calls it again and again.
// Thread-safe: one lock for everything. (MPI buffers short messages that nobody receives, as many as memory allows.)

#include <functional>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "world/transport/first_failure.h"
#include "world/transport/frame.h"
#include "world/transport/matcher.h"
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
  std::vector<EchelonMpiRequest> requests;            // that MPI has not completed
  std::vector<std::byte> buffer;                      // header and short payload, or the bytes for a sink
  MpiOperation *next = nullptr, *previous = nullptr;  // in its channel's queue
};

class MpiTransport {
 public:
  // `idle` is called while a task waits, outside the lock, and may throw. `status` is told of every status frame.
  MpiTransport(EchelonMpiApi& api, FirstFailure& failure, Clock& clock, std::function<void()> idle,
               std::function<void(Rank from, const RankStatus&)> status);
  ~MpiTransport();

  Work send(Rank to, Channel channel, const Label& label, std::span<const std::byte> bytes);
  Work receive(Rank from, Channel channel, const Label& label, std::byte* into, std::size_t bytes, Sink sink);
  void say(FrameKind kind, Rank to, std::span<const std::byte> payload, std::uint64_t sequence = 0);
  void progress();
  // Calls `progress` until the condition holds; false at the deadline.
  bool wait_for(double deadline, const std::function<bool()>& condition);
  bool all_have_ended();  // every other rank has said `bye`, `abort` or `lost`
  bool nothing_left();    // all sends are complete

 private:
  friend struct MpiOperation;
  struct Arrival {  // an unexpected message
    FrameHeader header;
    std::vector<std::byte> payload;
  };
  using Channels = Matcher<MpiOperation, Arrival>;
  Channels::Queue& queue_of(Rank peer, Channel channel) {
    return queues_[(std::uint64_t(std::uint32_t(peer)) << 32) | channel];
  }
  MpiOperation& take();
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
  std::function<void(Rank from, const RankStatus&)> status_;
  std::mutex mutex_;
  Pool<MpiOperation> operations_;
  std::vector<MpiOperation*> active_;  // for which MPI has something to do
  Channels channels_;
  std::unordered_map<std::uint64_t, Channels::Queue> queues_;  // by peer and channel
  std::vector<char> ended_;
  std::uint32_t next_tag_ = 0;
  EchelonMpiRequest listening_;
  std::vector<std::byte> heard_;
};

}  // namespace echelon::mpi
