#pragma once
// What arrives on one connection: frames become messages in the memory that the program has named, without a detour if
// it has named it already. It knows nothing of sockets: `room` says where the next bytes go, `advance` hears how many
// came. Short messages that come before anybody has asked wait in buffers of our own; the sender keeps to a limit
// (world/transport/tcp/frame_sender.h), and one that does not is not one of ours: BadFrame.
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
#include "world/transport/tcp/frame_sender.h"

namespace echelon::tcp {

class FrameReceiver {
 public:
  // Notes from the other side that are not about messages: alive, doing, abort, lost, bye.
  using Hear = std::function<void(const FrameHeader&, std::span<const std::byte> payload)>;

  FrameReceiver(int from, int to, std::uint32_t epoch, FrameSender& sender, Hear hear);

  void post(Transfer& transfer);  // finishes it when its last byte is there (perhaps at once)
  void abandon(Transfer& transfer);
  void fail_all(Transfer::State state);

  std::size_t room(std::span<iovec, 2> pieces);  // how many of them are used
  void advance(std::size_t bytes);               // throws BadFrame

 private:
  struct Waiting {  // a short message that nobody has asked for yet
    Label label;
    std::vector<std::byte> bytes;
  };
  struct ChannelState {
    std::uint64_t posted = 0, arrived = 0;
    TransferQueue queue;           // those for which the message has not come; its first is number `arrived`
    std::vector<Waiting> waiting;  // from `first_waiting` on
    std::size_t first_waiting = 0;
    std::size_t waiting_cost = 0;
    Transfer* receiving = nullptr;  // the first of the queue, when a part of its message is there
    bool discarding = false;        // the rest of this message goes nowhere
    std::uint64_t offset = 0;
    std::uint64_t taken = 0, told = 0;  // cost of short messages
    std::optional<FrameHeader> announced;
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
  static Transfer* asked_for(ChannelState& channel_state, std::uint64_t number);
  void take(Channel channel, ChannelState& channel_state, std::uint64_t bytes);
  std::vector<std::byte> buffer(std::size_t bytes);

  std::uint32_t from_, to_, epoch_;
  FrameLimits limits_;
  FrameSender& sender_;
  Hear hear_;
  std::unordered_map<Channel, std::unique_ptr<ChannelState>> channels_;
  std::vector<std::vector<std::byte>> spare_;  // buffers that were used before

  std::vector<std::byte> early_;  // bytes that came before we knew where they belong
  std::size_t early_at_ = 0, early_end_ = 0;
  std::vector<std::byte> bounce_;
  bool in_payload_ = false, checked_ = true;
  FrameHeader header_;
  ChannelState* channel_state_ = nullptr;
  std::vector<std::byte> arriving_;  // of a short message that nobody has asked for
  std::byte* target_ = nullptr;      // of the whole payload
  std::size_t have_ = 0;             // of the payload
};

}  // namespace echelon::tcp
