#pragma once
// The connection to one other rank: a FrameReceiver and a FrameSender on a Wire, moved by the mesh's I/O thread.
//
// send, receive, abandon, status: any thread. The rest: the I/O thread only. Nothing is thrown to the program here: a
// failure ends its Transfers.

#include <atomic>
#include <functional>
#include <mutex>
#include <string>

#include "world/transport/tcp/frame_receiver.h"
#include "world/transport/tcp/frame_sender.h"
#include "world/transport/tcp/wire.h"

namespace echelon::tcp {

// What a link asks of the mesh that owns it.
class LinkHost {
 public:
  virtual void wake() = 0;  // any thread: have the I/O thread call pump()
  virtual void lost(int rank, const std::string& reason, FailureKind kind = FailureKind::failure) = 0;  // I/O thread
  virtual void changed() = 0;                        // I/O thread: over(), quiet() or closed() may have changed
  virtual std::uint64_t status_version() const = 0;  // any thread: one more for each change of this rank's status
  virtual RankStatus status_now(std::uint64_t& version) = 0;
  virtual int ranks() const = 0;

 protected:
  ~LinkHost() = default;
};

class Link final : public Carrier {
 public:
  Link(LinkHost& host, TransferPool& pool, Clock& clock, int me, int peer, std::uint32_t epoch, Wire wire);

  Work send(Channel channel, const Label& label, std::span<const std::byte> bytes);
  Work receive(Channel channel, const Label& label, std::byte* into, std::size_t bytes, Sink sink);
  void abandon(Transfer& transfer) override;
  RankStatus status();  // as the peer last told it

  int peer() const { return peer_; }
  void start();
  void pump();  // writes what can be written, if wake() was called for this link
  void say(FrameKind kind, std::string_view text, std::uint64_t sequence = 0);
  void beat();                                     // sends a sign of life, with this rank's status if that is new
  void watch(double now, double silence_seconds);  // reports the peer as lost if it was silent for that long
  void forgive(double now) { last_heard_ = now; }  // its silence so far does not count
  void fail_all();                                 // the job has failed: ends all Transfers
  bool closed() const { return closed_; }
  bool over() const { return closed_ || peer_bye_; }
  bool quiet();    // there is nothing left to write, or nobody to write to
  void hang_up();  // nothing more will be written
  void close(Transfer::State state = Transfer::ended);

 private:
  Work failed(Transfer& transfer, Transfer::State state);
  void arm_read();
  void arm_write();
  void on_readable();
  void write();
  bool write_locked(std::size_t turn);  // false if something is left
  void write_from_program();
  void tell_status();
  bool read_locked(std::string& trouble);
  void hear(const FrameHeader& header, std::span<const std::byte> payload);
  void end(const std::string& reason);

  LinkHost& host_;
  TransferPool& pool_;
  Clock& clock_;
  const int peer_;

  std::mutex mutex_;  // of all that follows but the atomics
  Wire wire_;
  FrameSender sender_;
  FrameReceiver receiver_;
  bool writing_ = false;  // the I/O thread waits until the socket takes more
  bool closed_ = false, hung_up_ = false, peer_bye_ = false, failed_ = false;
  RankStatus status_;
  std::uint64_t status_told_ = 0;
  int lost_rank_ = -1;  // told by the peer; reported once the lock is released
  std::string lost_reason_;
  FailureKind lost_kind_ = FailureKind::failure;

  std::atomic<bool> wants_pump_ = false;
  std::atomic<double> last_heard_;
};

}  // namespace echelon::tcp
