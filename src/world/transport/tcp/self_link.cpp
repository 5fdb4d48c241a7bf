#include "world/transport/tcp/self_link.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace echelon::tcp {

SelfLink::SelfLink(TransferPool& pool, int me)
    : pool_(pool), me_(me), sender_(me, me, 0), receiver_(me, me, 0, sender_, [](const FrameHeader&, auto) {}) {}

Work SelfLink::send(Channel channel, const Label& label, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (!failed_ && sender_.send_copy(channel, label, bytes)) {
    move();
    return Work();
  }
  Transfer& t = pool_.take({*this, me_, channel, label}, bytes);
  if (failed_)
    t.finish(Transfer::lost);
  else
    sender_.send(t);
  move();
  return Work(&t);
}

Work SelfLink::receive(Channel channel, const Label& label, std::byte* into, std::size_t bytes, Sink sink) {
  const std::lock_guard lock(mutex_);
  Transfer& t = pool_.take({*this, me_, channel, label}, into, bytes, sink);
  if (failed_)
    t.finish(Transfer::lost);
  else
    receiver_.receive(t);
  move();
  return Work(&t);
}

void SelfLink::abandon(Transfer& transfer) {
  const std::lock_guard lock(mutex_);
  if (transfer.settled()) return;
  if (transfer.sends)
    sender_.abandon(transfer);
  else
    receiver_.abandon(transfer);
}

void SelfLink::fail_all() {
  const std::lock_guard lock(mutex_);
  failed_ = true;
  receiver_.fail_all(Transfer::lost);
  sender_.fail_all(Transfer::lost);
}

void SelfLink::move() {
  std::array<iovec, 3> out;
  std::array<iovec, 2> in;
  for (std::size_t pieces; (pieces = sender_.gather(out)) > 0;) {
    receiver_.room(in);
    const std::size_t n = std::min(out[0].iov_len, in[0].iov_len);
    std::memcpy(in[0].iov_base, out[0].iov_base, n);
    sender_.advance(n);
    receiver_.advance(n);
  }
}

}  // namespace echelon::tcp
