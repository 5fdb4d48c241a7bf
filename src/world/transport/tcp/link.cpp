#include "world/transport/tcp/link.h"

#include <array>

namespace echelon::tcp {

namespace {

constexpr std::size_t turn_bytes = std::size_t{2} << 20;  // moved before other links have their turn

using Socket = asio::ip::tcp::socket;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Link::Link(LinkHost& host, TransferPool& pool, Clock& clock, int me, int peer, std::uint32_t epoch, Wire wire)
    : host_(host),
      pool_(pool),
      clock_(clock),
      peer_(peer),
      wire_(std::move(wire)),
      sender_(me, peer, epoch),
      receiver_(peer, me, epoch, sender_, [this](const FrameHeader& h, std::span<const std::byte> p) { hear(h, p); }),
      last_heard_(clock.seconds()) {}

Work Link::failed(Transfer& transfer, Transfer::State state) {
  transfer.finish(state);
  return Work(&transfer);
}

Work Link::send(Channel channel, const Label& label, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  tell_status();
  if (!failed_ && !closed_ && sender_.send_copy(channel, label, bytes)) {
    write_from_program();
    return Work();
  }
  Transfer& t = pool_.take({*this, peer_, channel, label}, bytes);
  if (failed_) return failed(t, Transfer::lost);
  if (closed_) return failed(t, Transfer::ended);
  sender_.send(t);
  if (!writing_) {
    wants_pump_.store(true);
    host_.wake();
  }
  return Work(&t);
}

Work Link::receive(Channel channel, const Label& label, std::byte* into, std::size_t bytes, Sink sink) {
  Transfer& t = pool_.take({*this, peer_, channel, label}, into, bytes, sink);
  const std::lock_guard lock(mutex_);
  if (failed_) return failed(t, Transfer::lost);
  receiver_.receive(t);
  if (!t.settled() && peer_bye_) {
    receiver_.abandon(t);
    return failed(t, Transfer::ended);
  }
  if (!sender_.empty()) write_from_program();
  return Work(&t);
}

// The program's thread writes a little by itself, which saves waking the I/O thread; that one writes the rest.
void Link::write_from_program() {
  if (writing_ || write_locked(eager_bytes)) return;
  wants_pump_.store(true);
  host_.wake();
}

void Link::abandon(Transfer& transfer) {
  const std::lock_guard lock(mutex_);
  if (transfer.settled()) return;
  if (transfer.sends)
    sender_.abandon(transfer);
  else
    receiver_.abandon(transfer);
}

RankStatus Link::status() {
  const std::lock_guard lock(mutex_);
  return status_;
}

// Under TLS the first frames may have been read together with the end of the handshake: the socket would not tell, so
// this does not wait for it.
void Link::start() {
  asio::post(wire_.socket().get_executor(), [this] { on_readable(); });
}

void Link::arm_read() {
  wire_.socket().async_wait(Socket::wait_read, [this](std::error_code error) {
    if (!error) on_readable();
  });
}

void Link::on_readable() {
  std::string trouble;
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    more = read_locked(trouble);
    if (!writing_ && !sender_.empty() && !write_locked(turn_bytes)) {
      writing_ = true;
      arm_write();
    }
  }
  if (lost_rank_ >= 0) host_.lost(std::exchange(lost_rank_, -1), lost_reason_, lost_kind_);
  if (!trouble.empty()) return end(trouble);
  if (more)
    asio::post(wire_.socket().get_executor(), [this] { on_readable(); });
  else
    arm_read();
  if (peer_bye_) host_.changed();
}

// True if there may be more to read at once.
bool Link::read_locked(std::string& trouble) {
  std::array<iovec, 2> pieces;
  for (std::size_t total = 0; total < turn_bytes;) {
    const std::size_t n = receiver_.room(pieces);
    std::size_t wanted = 0;
    for (std::size_t i = 0; i < n; ++i) wanted += pieces[i].iov_len;
    std::size_t bytes = 0;
    const Flow flow = wire_.read(std::span(pieces).first(n), bytes);
    if (flow == Flow::wants_input) return false;
    if (flow == Flow::closed) {
      trouble = "its connection closed";
      return false;
    }
    last_heard_.store(clock_.seconds(), std::memory_order_relaxed);
    try {
      receiver_.advance(bytes);
    } catch (const Failure& e) {
      trouble = std::string("what it sends is damaged: ") + e.what();
      return false;
    }
    total += bytes;
    if (bytes < wanted && !wire_.tls()) return false;
  }
  return true;
}

bool Link::write_locked(std::size_t turn) {
  std::array<iovec, 3> pieces;
  for (std::size_t total = 0; total < turn;) {
    const std::size_t n = sender_.gather(pieces);
    if (n == 0) return wire_.flush() != Flow::wants_output;
    std::size_t bytes = 0;
    const Flow flow = wire_.write(std::span(pieces).first(n), bytes);
    if (flow == Flow::closed) return true;  // the reader will hear of it
    sender_.advance(bytes);
    total += bytes;
    if (flow == Flow::wants_output) return false;
  }
  return false;
}

void Link::arm_write() {
  wire_.socket().async_wait(Socket::wait_write, [this](std::error_code error) {
    if (!error) write();
  });
}

void Link::write() {
  bool finished = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    finished = write_locked(turn_bytes);
    writing_ = !finished;
    if (!finished) arm_write();
  }
  if (finished) host_.changed();
}

void Link::pump() {
  if (!wants_pump_.exchange(false)) return;
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || writing_) return;
    writing_ = true;
  }
  write();
}

// Before a message, so that its receiver knows this rank's status at the time of the send.
void Link::tell_status() {
  if (host_.status_version() == status_told_ || closed_ || hung_up_) return;
  sender_.note(FrameKind::status, encode(host_.status_now(status_told_)));
}

void Link::beat() {
  const std::lock_guard lock(mutex_);
  if (closed_ || hung_up_) return;
  if (host_.status_version() == status_told_)
    sender_.note(FrameKind::alive, {});
  else
    tell_status();
  if (!writing_ && !write_locked(turn_bytes)) {
    writing_ = true;
    arm_write();
  }
}

void Link::say(FrameKind kind, std::string_view text, std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  if (closed_ || hung_up_) return;
  sender_.note(kind, std::as_bytes(std::span(text)), sequence);
  if (!writing_ && !write_locked(turn_bytes)) {
    writing_ = true;
    arm_write();
  }
}

void Link::hear(const FrameHeader& header, std::span<const std::byte> payload) {
  switch (header.kind) {
    case FrameKind::alive: break;
    case FrameKind::status: status_ = decode_status(payload, host_.ranks()); break;
    case FrameKind::bye:
      if (lost_rank_ >= 0) break;  // not a good end
      peer_bye_ = true;
      receiver_.fail_all(Transfer::ended);
      sender_.fail_unasked(Transfer::ended);
      break;
    case FrameKind::abort:
      lost_rank_ = peer_;
      lost_reason_ = text_of(payload);
      lost_kind_ = lost_kind_of(header.sequence);
      break;
    case FrameKind::lost:
      lost_rank_ = lost_rank_of(header.sequence);
      lost_reason_ = text_of(payload);
      lost_kind_ = lost_kind_of(header.sequence);
      break;
    default:
      throw BadFrame(FrameFault::kind, fmt::format("a frame of kind {} between ranks", static_cast<int>(header.kind)));
  }
}

void Link::watch(double now, double silence_seconds) {
  if (closed_ || now - last_heard_.load(std::memory_order_relaxed) <= silence_seconds) return;
  end(fmt::format("nothing was heard of it for {:.1f} s", silence_seconds));
}

void Link::end(const std::string& reason) {
  if (!peer_bye_) host_.lost(peer_, reason);
  close(peer_bye_ ? Transfer::ended : Transfer::lost);
  host_.changed();
}

void Link::fail_all() {
  const std::lock_guard lock(mutex_);
  failed_ = true;
  receiver_.fail_all(Transfer::lost);
  sender_.fail_all(Transfer::lost);
}

bool Link::quiet() {
  const std::lock_guard lock(mutex_);
  return closed_ || (sender_.empty() && !writing_);
}

void Link::hang_up() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(hung_up_, true) || closed_) return;
  std::error_code ignored;
  wire_.socket().shutdown(Socket::shutdown_send, ignored);
}

void Link::close(Transfer::State state) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(closed_, true)) return;
  std::error_code ignored;
  wire_.socket().close(ignored);
  receiver_.fail_all(state);
  sender_.fail_all(state);
}

}  // namespace echelon::tcp
