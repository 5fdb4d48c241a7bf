#pragma once
// The connections of one rank to all others, and the thread that moves their bytes. Ranks with lower numbers are
// dialled, those with higher numbers are let in by a Listener, which is closed as soon as all are there. Every rank
// sends a sign of life now and then; a rank that is silent, or whose connection closes before its `bye`, is lost, and
// all are told.
//
// Thread-safe except where it says otherwise. It owns its thread, which runs until the destructor.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "world/launch.h"
#include "world/transport/tcp/link.h"
#include "world/transport/tcp/rendezvous.h"

namespace echelon::tcp {

struct RankConfig {  // what a rank needs to join its job
  int rank = 0;
  JobTable table;
  int listener = -1;             // a socket bound to the table's port; the world listens at it and closes it
  Credentials credentials;       // of the job; the world derives that of the session from it
  double mesh_seconds = 20;      // for all connections to be made
  double silence_seconds = 2.2;  // after which a rank is lost
  double beat_seconds = 0.4;
  bool share_memory = true;  // with ranks of the same machine
  LaunchOptions launch;
  const FirstFailure* neighbours = nullptr;  // of the ranks that the same launcher has started; null: it tells nothing
};

class Mesh final : public LinkHost {
 public:
  // Begins to connect. `on_failure` is called once, by any thread, when `failure` is set; it ends the waits that do not
  // go through a link. All must outlive the mesh.
  Mesh(const RankConfig& config, FirstFailure& failure, TransferPool& pool, Clock& clock,
       std::function<void()> on_failure);
  // Says to the others what there is left to say, for at most about two seconds, and closes the connections.
  ~Mesh();

  void join();  // waits until all connections are there; throws PeerLost
  void stop();  // ends at once, without a word to the others; for one that could not join
  void abort(std::string_view reason, FailureKind kind);
  void finish();  // after the program: waits for the others' `bye`; throws PeerLost

  Link& link(int rank);  // Failure if there is none to that rank
  void set_status(const RankStatus& status);

 private:
  asio::awaitable<void> connect(int peer, Credentials credentials);
  void add_link(int peer, Wire wire);
  void listen_for_wakes();
  void beat();
  void fail_links();
  void on_io_thread(std::function<void()> act);
  template <typename Condition>
  bool wait_for(double seconds, Condition condition);
  void expect_neighbours();
  template <typename Act>
  void each_link(Act&& act);

  void wake() override;
  void lost(int rank, const std::string& reason, FailureKind kind = FailureKind::failure) override;
  void changed() override;
  std::uint64_t status_version() const override { return status_version_.load(); }
  RankStatus status_now(std::uint64_t& version) override;
  int ranks() const override { return size_; }

  const RankConfig config_;
  const int rank_, size_;
  FirstFailure& failure_;
  TransferPool& pool_;
  Clock& clock_;
  const std::function<void()> on_failure_;

  asio::io_context io_{1};
  asio::posix::stream_descriptor waker_;
  std::atomic<bool> woken_ = false;
  asio::steady_timer beat_timer_{io_};
  double last_beat_ = 0;
  std::unique_ptr<Listener> listener_;
  std::vector<std::unique_ptr<Link>> links_;  // by rank; this rank's is null
  int missing_ = 0;

  std::mutex mutex_;  // guards what follows, up to the thread
  std::condition_variable changed_;
  RankStatus status_;
  std::atomic<std::uint64_t> status_version_ = 0;
  bool whole_ = false;                                  // all connections are there
  bool said_bye_ = false;                               // to all others
  bool over_ = false, quiet_ = false, closed_ = false;  // whether all links are
  std::unique_ptr<Task> thread_;                        // null once stopped
};

}  // namespace echelon::tcp
