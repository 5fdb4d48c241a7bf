#pragma once
// Messages of a rank to itself: the two halves of a connection (FrameSender, FrameReceiver) without a socket between
// them. Thread-safe.

#include <mutex>

#include "world/transport/tcp/frame_receiver.h"

namespace echelon::tcp {

class SelfLink final : public Carrier {
 public:
  SelfLink(TransferPool& pool, int me);

  Work send(Channel channel, const Label& label, std::span<const std::byte> bytes);
  Work receive(Channel channel, const Label& label, std::byte* into, std::size_t bytes, Sink sink);
  void abandon(Transfer& transfer) override;
  void fail_all();

 private:
  void move();

  TransferPool& pool_;
  const int me_;
  std::mutex mutex_;
  bool failed_ = false;
  FrameSender sender_;
  FrameReceiver receiver_;
};

}  // namespace echelon::tcp
