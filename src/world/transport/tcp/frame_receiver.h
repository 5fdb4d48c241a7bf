#pragma once
// The receiving half of a connection: puts the payloads of frames into the memory that receives have named. It has no
// socket: `room` gives the memory for the next bytes (the receive's own, if that has begun), `advance` is told how many
// arrived. An unexpected short message waits in a buffer here; the sender respects a limit on their bytes
// (world/transport/tcp/frame_sender.h), and a peer that does not is refused.
//
// A frame is refused with BadFrame if it is damaged, repeated, missing or out of order on its channel, or not of this
// connection and epoch: the connection is then of no use any more. Everything delivered before was right.
//
// For one thread at a time (Link locks).

#include <sys/uio.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "world/transport/frame.h"
#include "world/transport/matcher.h"
#include "world/transport/tcp/frame_sender.h"

namespace echelon::tcp {

class FrameReceiver {
 public:
  // Is given the frames that are not about messages: alive, status, abort, lost, bye.
  using Hear = std::function<void(const FrameHeader&, std::span<const std::byte> payload)>;

  FrameReceiver(int from, int to, std::uint32_t epoch, FrameSender& sender, Hear hear);

  void receive(Transfer& transfer);  // finishes it when its last byte has arrived (perhaps at once)
  void abandon(Transfer& transfer);
  void fail_all(Transfer::State state);

  std::size_t room(std::span<iovec, 2> pieces);  // how many of them are used
  void advance(std::size_t bytes);               // throws BadFrame

 private:
  struct Arrival {  // a short message that nobody has asked for yet
    Label label;
    std::vector<std::byte> bytes;
  };
  using Channels = Matcher<Transfer, Arrival>;
  struct ChannelState {
    std::uint64_t asked = 0, arrived = 0;  // receives that have begun, messages that are complete
    Channels::Queue queue;
    std::size_t unexpected_cost = 0;
    Transfer* receiving = nullptr;         // the first pending receive, while only a part of its message has arrived
    bool discarding = false;               // the rest of the message that arrives is thrown away
    std::uint64_t offset = 0;              // bytes of that message that are complete
    std::uint64_t taken = 0, told = 0;     // cost of short messages
    std::optional<FrameHeader> announced;  // a long message for which no receive has begun
  };
  ChannelState& channel_state(Channel channel);
  void parse();
  void begin(const FrameHeader& header);
  void begin_data();
  void finish_frame();
  void finish_data();
  void hear_control();
  bool fits(Transfer& transfer, const Label& label, std::uint64_t bytes);
  void deliver(Transfer& transfer, const Label& label, std::span<const std::byte> bytes);
  static Transfer* receive_of(ChannelState& channel, std::uint64_t number);
  void take(Channel number, ChannelState& channel, std::uint64_t bytes);

  std::uint32_t from_, to_, epoch_;
  FrameLimits limits_;
  FrameSender& sender_;
  Hear hear_;
  std::unordered_map<Channel, std::unique_ptr<ChannelState>> channels_;
  Channels matcher_;

  std::vector<std::byte> unparsed_;  // bytes that arrived before it was known where they belong
  std::size_t unparsed_at_ = 0, unparsed_end_ = 0;
  std::vector<std::byte> bounce_;  // for payloads that go nowhere, to a sink, or are control frames
  bool in_payload_ = false, checked_ = true;
  FrameHeader header_;
  ChannelState* channel_state_ = nullptr;
  std::vector<std::byte> arriving_;  // the payload, if the message is unexpected
  std::byte* target_ = nullptr;      // where the payload goes
  std::size_t have_ = 0;             // bytes of it that have arrived
};

}  // namespace echelon::tcp
