#pragma once
// The sending half of a connection: cuts messages into frames and adds the control frames (notes) of this side. It has
// no socket: `gather` gives the bytes to write next, `advance` is told how many of them were written.
//
// Flow control: the receiver buffers a bounded number of bytes. A message of at most `eager_bytes` is sent before the
// other side has begun to receive it, as long as the bytes of this channel that the other side has not yet taken stay
// below `window_bytes`. A longer message waits for the other side's `ready` note; its bytes then go straight into the
// receiver's memory. Channels take turns, a frame each.
//
// For one thread at a time (Link locks).

#include <sys/uio.h>

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "world/transport/frame.h"
#include "world/transport/tcp/transfer.h"

namespace echelon::tcp {

constexpr std::size_t eager_bytes = std::size_t{64} << 10;
constexpr std::size_t window_bytes = std::size_t{512} << 10;
constexpr std::size_t piece_bytes = std::size_t{256} << 10;  // the longest payload of a frame
constexpr std::size_t copied_bytes = std::size_t{8} << 10;   // shorter messages are copied and done at once

constexpr std::size_t most_channels = 1 << 16;  // of one connection, each way

enum class Note : std::uint8_t { ready = 1, announce = 2 };  // the payload of a control frame

inline std::uint64_t cost_of(std::uint64_t bytes) { return bytes + frame_header_bytes; }

class FrameSender {
 public:
  FrameSender(int from, int to, std::uint32_t epoch);

  // Copies a short message, whose send is then done. False if it is too long for that, or must wait for its turn.
  bool send_copy(Channel channel, const Label& label, std::span<const std::byte> bytes);
  void send(Transfer& transfer);  // finishes it when its last byte has been written

  void note(FrameKind kind, std::span<const std::byte> payload, std::uint64_t sequence = 0);
  void ready(Channel channel, std::uint64_t number);      // its receive has begun
  void acknowledge(Channel channel, std::uint64_t cost);  // of the channel's short messages that were taken so far

  void hear_ready(Channel channel, std::uint64_t number);
  void hear_acknowledge(Channel channel, std::uint64_t cost);

  bool empty() const { return notes_at_ == notes_.size() && !framed_ && ready_.empty(); }
  std::size_t gather(std::span<iovec, 3> pieces);  // how many of them are used; 0: nothing to write now
  void advance(std::size_t bytes);

  void abandon(Transfer& transfer);          // ends the use of its memory
  void fail_all(Transfer::State state);      // ends all transfers
  void fail_unasked(Transfer::State state);  // ends those that wait for something from the other side

 private:
  struct ChannelState {
    Channel channel = 0;
    std::uint64_t next = 0;             // number of the next message
    std::uint64_t granted = 0;          // the other side receives all messages with lower numbers
    std::uint64_t sent = 0, taken = 0;  // cost of short messages
    TransferQueue queue;
    std::size_t at = 0;  // bytes of the first that have been written
    bool announced = false, listed = false, dead = false;
  };
  ChannelState& channel_state(Channel channel);
  void list(ChannelState& channel);
  bool may_go(ChannelState& channel);
  bool next_frame();
  void append(FrameHeader header, std::span<const std::byte> payload);
  FrameHeader stamp(FrameKind kind) const;

  int from_, to_;
  std::uint32_t epoch_;
  std::unordered_map<Channel, std::unique_ptr<ChannelState>> channels_;
  std::vector<ChannelState*> ready_;  // those that have something to send
  std::vector<std::byte> notes_;
  std::size_t notes_at_ = 0;

  bool framed_ = false;  // a frame has been made and not yet written
  FrameHeaderBytes header_;
  std::span<const std::byte> payload_;
  std::size_t written_ = 0;                // of header and payload
  ChannelState* frame_channel_ = nullptr;  // of that frame; null: its transfer was abandoned
  std::vector<std::byte> spare_;
};

}  // namespace echelon::tcp
