// A peer that has the secret and sends frames of every kind, with good checksums and any numbers in them, in any order:
// they are taken or refused with a Failure; nothing is written outside the memory that was named. The input is a list
// of orders of eight bytes: post a receive, or send a frame.

#include <array>
#include <cstring>
#include <deque>

#include "world/os/clock.h"
#include "world/transport/tcp/frame_receiver.h"

namespace {

using namespace echelon;
using namespace echelon::tcp;

struct Nobody final : Carrier {
  void abandon(Transfer&) override {}
};

void feed(FrameReceiver& receiver, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::array<iovec, 2> room;
    const std::size_t pieces = receiver.room(room);
    std::size_t took = 0;
    for (std::size_t i = 0; i < pieces && !bytes.empty(); ++i) {
      const std::size_t n = std::min(bytes.size(), room[i].iov_len);
      std::memcpy(room[i].iov_base, bytes.data(), n);
      bytes = bytes.subspan(n);
      took += n;
      if (n < room[i].iov_len) break;
    }
    invariant(took > 0, "there is always room");
    receiver.advance(took);
  }
}

}  // namespace

int fuzz_frame_receiver(const std::uint8_t* data, std::size_t size) {
  const auto clock = make_real_clock();
  FirstFailure failure;
  Nobody nobody;
  TransferPool pool(failure, *clock);
  FrameSender sender(0, 1, 1);
  FrameReceiver receiver(1, 0, 1, sender, [](const FrameHeader&, std::span<const std::byte>) {});
  std::deque<std::vector<std::byte>> memory;
  std::vector<Transfer*> posted;
  static const std::vector<std::byte> payload(piece_bytes, std::byte{7});
  try {
    for (; size >= 8; data += 8, size -= 8) {
      static constexpr std::size_t sizes[] = {0, 1, 100, 8192, 65536, 65537, 262144, 300000};
      const std::size_t bytes = sizes[data[1] & 7];
      if (data[0] & 1) {
        const Label label{.number = data[3] & 1u};
        Transfer& t = pool.take({nobody, 1, data[2] & 3u, label}, memory.emplace_back(bytes).data(), bytes, {});
        receiver.receive(t);
        posted.push_back(&t);
        continue;
      }
      FrameHeader h;
      h.kind = static_cast<FrameKind>(data[4] % frame_kinds);
      if (data[4] > 200) h.kind = FrameKind::data;
      h.from = 1;
      h.epoch = 1;
      h.channel = data[2] & 3;
      h.label.number = data[3] & 1;
      h.sequence = data[5] & 7;
      h.message_bytes = bytes;
      h.offset = sizes[data[6] & 7];
      h.acknowledged = data[7];
      std::span<const std::byte> body = std::span(payload).first(std::min(sizes[data[7] & 7], piece_bytes));
      const Note note = static_cast<Note>(data[6] & 3);
      if (h.kind == FrameKind::control) body = std::as_bytes(std::span(&note, 1));
      seal(h, body);
      feed(receiver, encode_header(h));
      feed(receiver, body);
    }
  } catch (const Failure&) {
  }
  for (Transfer* t : posted) {
    if (!t->settled()) receiver.abandon(*t);
    pool.give_back(*t);
  }
  return 0;
}
