#include "world/transport/tcp/tcp_world.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <future>
#include <thread>

#include "world/channels.h"
#include "world/os/tasks.h"
#include "world/transport/memory/host_ranks.h"
#include "world/transport/tcp/link.h"
#include "world/transport/tcp/self_link.h"

namespace echelon::tcp {

namespace {

using asio::ip::tcp;

constexpr std::uint32_t epoch = 1;
constexpr std::size_t longest_status = 63, longest_reason = 1000;

class TcpWorld final : public World, public LinkHost {
 public:
  explicit TcpWorld(const RankConfig& config);
  ~TcpWorld();
  void finish();  // after the program: waits for the others' end
  bool broken() const { return failure_.known() || (host_ranks_ && host_ranks_->segment().failure().broken()); }

  const RankPlace& place() const override { return place_; }
  Clock& clock() override { return *clock_; }
  void sleep(double seconds) override { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }
  void compute(double) override {}
  Disk& disk() override { return *disk_; }
  std::unique_ptr<Task> spawn(const std::string& name, std::function<void()> body) override {
    return spawn_thread(name, std::move(body));
  }
  std::unique_ptr<Event> make_event() override { return make_thread_event(); }

  Work send(Rank to, Channel channel, Label label, std::span<const std::byte> bytes) override {
    if (near(to)) return host_ranks_->endpoint().send(host_ranks_->index(to), channel, label, bytes);
    if (to == place_.rank) return self_.send(channel, label, bytes);
    return link(to).send(channel, label, bytes);
  }
  Work receive(Rank from, Channel channel, Label label, std::span<std::byte> into) override {
    if (near(from)) {
      return host_ranks_->endpoint().receive(host_ranks_->index(from), channel, label, into.size(), into.data(), {});
    }
    if (from == place_.rank) return self_.receive(channel, label, into.data(), into.size(), {});
    return link(from).receive(channel, label, into.data(), into.size(), {});
  }
  Work receive(Rank from, Channel channel, Label label, std::size_t bytes, Sink sink) override {
    if (near(from)) {
      return host_ranks_->endpoint().receive(host_ranks_->index(from), channel, label, bytes, nullptr, sink);
    }
    if (from == place_.rank) return self_.receive(channel, label, nullptr, bytes, sink);
    return link(from).receive(channel, label, nullptr, bytes, sink);
  }
  SharedMemory* shared_memory() override { return host_ranks_ ? host_ranks_->shared_memory() : nullptr; }

  void set_status(std::string_view what) override {
    const std::lock_guard lock(mutex_);
    if (status_ == what) return;
    status_ = what.substr(0, longest_status);
    status_version_.fetch_add(1);
    if (host_ranks_) host_ranks_->segment().rank(host_ranks_->index(place_.rank)).status.write(what);
  }
  std::string status_of(Rank rank) override;
  void abort(std::string_view reason) override;

 private:
  bool near(Rank rank) const { return host_ranks_ && rank >= 0 && rank < place_.size && host_ranks_->has(rank); }
  Link& link(Rank rank);
  asio::awaitable<void> connect(int peer, Credentials credentials);
  void add_link(int peer, Wire wire);
  void await_mesh();
  void find_host_ranks();
  void listen_for_wakes();
  void beat();
  void fail_links();
  void tell_host_ranks();
  void on_io_thread(std::function<void()> act);

  void wake() override;
  void lost(int rank, const std::string& reason) override;
  void changed() override;
  std::uint64_t status_version() const override { return status_version_.load(); }
  std::string status_now(std::uint64_t& version) override {
    const std::lock_guard lock(mutex_);
    version = status_version_.load();
    return status_;
  }
  template <typename Condition>
  bool wait_for(double seconds, Condition condition);

  RankConfig config_;
  RankPlace place_;
  std::unique_ptr<Clock> clock_ = make_real_clock();
  std::unique_ptr<Disk> disk_ = make_real_disk();
  FirstFailure failure_;
  TransferPool pool_{failure_, *clock_};
  SelfLink self_;
  std::unique_ptr<HostRanks> host_ranks_;  // those on this machine, if memory can be shared with them

  asio::io_context io_{1};
  asio::posix::stream_descriptor waker_{io_, ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<bool> woken_ = false;
  asio::steady_timer beat_timer_{io_};
  double last_beat_ = 0;
  std::unique_ptr<Listener> listener_;
  std::vector<std::unique_ptr<Link>> links_;  // by rank; ours is null
  int missing_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string status_;
  std::atomic<std::uint64_t> status_version_ = 0;
  bool whole_ = false;                                  // all connections are there
  bool said_bye_ = false;                               // to all others
  bool over_ = false, quiet_ = false, closed_ = false;  // what `changed` found of all links
  std::unique_ptr<Task> thread_;
};

TcpWorld::TcpWorld(const RankConfig& config) : config_(config), self_(pool_, config.rank) {
  const auto& peers = config.table.peers;
  place_.world = "tcp";
  place_.rank = config.rank;
  place_.size = static_cast<int>(peers.size());
  place_.seed = config.table.seed;
  std::vector<int> hosts;
  for (const Peer& peer : peers) hosts.push_back(peer.host);
  place_.host = std::move(hosts);
  links_.resize(peers.size());
  missing_ = place_.size - 1;
  last_beat_ = clock_->seconds();

  Credentials credentials = config.credentials;
  credentials.secret = derive(credentials.secret, "session", config.table.session);
  credentials.max_strangers = std::max<std::size_t>(credentials.max_strangers, 2 * peers.size());
  tcp::acceptor acceptor(io_);
  const bool v6 = config.table.peers[static_cast<std::size_t>(config.rank)].address.find(':') != std::string::npos;
  acceptor.assign(v6 ? tcp::v6() : tcp::v4(), config.listener);
  if (missing_ > 0) {
    listener_ = std::make_unique<Listener>(
        std::move(acceptor), credentials,
        [this](const Hello& hello) {
          const bool expected = hello.role == Role::rank && hello.to == place_.rank && hello.from > place_.rank &&
                                hello.from < place_.size && !links_[static_cast<std::size_t>(hello.from)];
          return expected ? Verdict::welcome : Verdict::not_expected;
        },
        [this](Wire wire, const Hello& hello) { add_link(hello.from, std::move(wire)); });
    for (int peer = 0; peer < place_.rank; ++peer) asio::co_spawn(io_, connect(peer, credentials), asio::detached);
  } else {
    whole_ = true;
  }
  listen_for_wakes();
  beat();
  thread_ = spawn_thread("tcp", [this] { io_.run(); });
  try {
    await_mesh();
    if (config.share_memory) find_host_ranks();
  } catch (...) {
    io_.stop();
    thread_->join();
    throw;
  }
}

asio::awaitable<void> TcpWorld::connect(int peer, Credentials credentials) {
  const Peer& at = config_.table.peers[static_cast<std::size_t>(peer)];
  Hello hello;
  hello.role = Role::rank;
  hello.from = place_.rank;
  hello.to = peer;
  try {
    const tcp::endpoint endpoint(asio::ip::make_address(at.address), at.port);
    const auto deadline = std::chrono::steady_clock::now() + seconds_duration(config_.mesh_seconds);
    add_link(peer, co_await dial(endpoint, credentials, hello, deadline));
  } catch (const std::exception& e) {
    lost(peer, fmt::format("no connection to {}:{}: {}", at.address, at.port, e.what()));
  }
}

void TcpWorld::add_link(int peer, Wire wire) {
  auto& link = links_[static_cast<std::size_t>(peer)];
  link = std::make_unique<Link>(*this, pool_, *clock_, place_.rank, peer, epoch, std::move(wire));
  if (failure_.known()) {
    link->say(FrameKind::lost, failure_.reason(), static_cast<std::uint64_t>(failure_.rank()));
    link->fail_all();
  }
  link->start();
  if (--missing_ > 0) return;
  listener_->close();  // nobody else will be let in: from now on no port is open
  const std::lock_guard lock(mutex_);
  whole_ = true;
  changed_.notify_all();
}

template <typename Condition>
bool TcpWorld::wait_for(double seconds, Condition condition) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds), condition);
}

void TcpWorld::await_mesh() {
  const bool decided = wait_for(config_.mesh_seconds + 1, [&] { return whole_ || failure_.known(); });
  // One that has failed already was there before: its program ran, so shall ours, and hear of it where it waits.
  if (failure_.known() && wait_for(1, [&] { return whole_; })) return;
  if (failure_.known()) failure_.throw_peer_lost("joining");
  if (!decided) {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (static_cast<int>(i) != place_.rank && !links_[i]) {
        throw PeerLost(static_cast<int>(i), fmt::format("it did not connect within {:g} s", config_.mesh_seconds),
                       "joining");
      }
    }
  }
}

void TcpWorld::find_host_ranks() {
  std::unique_ptr<HostRanks> found;
  try {
    found = HostRanks::find(*this, config_.launch, host_ranks_channel, now() + config_.mesh_seconds);
  } catch (const PeerLost&) {
    return;  // the program will hear of it
  }
  if (!found) return;
  const std::lock_guard lock(mutex_);  // the I/O thread looks at it when a rank is lost
  pool_.wait_with(&found->endpoint());
  host_ranks_ = std::move(found);
  if (failure_.known()) tell_host_ranks();
}

// Ends the waits of the ranks on this machine that look at the common memory.
void TcpWorld::tell_host_ranks() {
  if (host_ranks_) host_ranks_->segment().break_world(failure_.rank(), FailureKind::failure, failure_.reason());
}

Link& TcpWorld::link(Rank rank) {
  if (rank < 0 || rank >= place_.size || rank == place_.rank) {
    fail("rank {} of {} has no connection to rank {}", place_.rank, place_.size, rank);
  }
  return *links_[static_cast<std::size_t>(rank)];
}

std::string TcpWorld::status_of(Rank rank) {
  if (near(rank)) return host_ranks_->segment().rank(host_ranks_->index(rank)).status.read();
  if (rank != place_.rank) return link(rank).status();
  const std::lock_guard lock(mutex_);
  return status_;
}

void TcpWorld::wake() {
  if (woken_.exchange(true)) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(waker_.native_handle(), &one, sizeof one);
}

void TcpWorld::listen_for_wakes() {
  waker_.async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code error) {
    if (error) return;
    std::uint64_t count;
    [[maybe_unused]] const auto n = ::read(waker_.native_handle(), &count, sizeof count);
    woken_.store(false);
    for (auto& link : links_) {
      if (link) link->pump();
    }
    listen_for_wakes();
  });
}

void TcpWorld::beat() {
  beat_timer_.expires_after(seconds_duration(config_.beat_seconds));
  beat_timer_.async_wait([this](std::error_code error) {
    if (error) return;
    const double now = clock_->seconds();
    // If we ourselves were stopped or starved, the others' words may still wait to be read.
    const bool was_away = now - std::exchange(last_beat_, now) > 2 * config_.beat_seconds + 0.2;
    for (auto& link : links_) {
      if (!link) continue;
      if (was_away) link->forgive(now);
      link->beat();
      link->watch(now, config_.silence_seconds);
    }
    beat();
  });
}

void TcpWorld::lost(int rank, const std::string& reason) {
  if (!failure_.set(rank, reason)) return;
  fail_links();
  for (auto& link : links_) {
    if (link) link->say(FrameKind::lost, reason.substr(0, longest_reason), static_cast<std::uint64_t>(rank));
  }
  changed();
}

void TcpWorld::fail_links() {
  {
    const std::lock_guard lock(mutex_);
    tell_host_ranks();
  }
  self_.fail_all();
  for (auto& link : links_) {
    if (link) link->fail_all();
  }
}

void TcpWorld::abort(std::string_view reason) {
  const std::string text(reason.substr(0, longest_reason));
  if (!failure_.set(place_.rank, text)) return;
  fail_links();
  asio::post(io_, [this, text] {
    for (auto& link : links_) {
      if (link) link->say(FrameKind::abort, text);
    }
    changed();
  });
}

void TcpWorld::changed() {
  bool over = true, quiet = true, closed = true;
  for (auto& link : links_) {
    over = over && (!link || link->over());
    quiet = quiet && (!link || link->quiet());
    closed = closed && (!link || link->closed());
  }
  const std::lock_guard lock(mutex_);
  over_ = over;
  quiet_ = quiet;
  closed_ = closed;
  changed_.notify_all();
}

void TcpWorld::finish() {
  if (host_ranks_) host_ranks_->end();
  asio::post(io_, [this] {
    for (auto& link : links_) {
      if (link && !failure_.known()) link->say(FrameKind::bye, {});
    }
    {
      const std::lock_guard lock(mutex_);
      said_bye_ = true;
    }
    changed();
  });
  while (!wait_for(60, [&] { return (said_bye_ && over_ && quiet_) || failure_.known(); })) {
  }
  if (failure_.known()) failure_.throw_peer_lost("the end of the program");
}

// Waits for its end, which depends on this process alone: on a machine that is too busy that may take longer than
// others should be waited for.
void TcpWorld::on_io_thread(std::function<void()> act) {
  const auto done = std::make_shared<std::promise<void>>();
  asio::post(io_, [done, act = std::move(act)] {
    act();
    done->set_value();
  });
  done->get_future().wait_for(std::chrono::seconds(60));
}

// Reads until the other side has nothing more to say: a connection that is closed with bytes unread is reset, and then
// the other side might lose our last words.
TcpWorld::~TcpWorld() {
  on_io_thread([this] { changed(); });  // after all that was said before
  if (failure_.known())
    wait_for(1, [&] { return quiet_; });  // the others should hear the reason before the line goes dead
  on_io_thread([this] {
    for (auto& link : links_) {
      if (link) link->hang_up();
    }
    changed();
  });
  wait_for(1, [&] { return closed_; });
  io_.stop();
  thread_->join();
}

}  // namespace

void run_rank(const RankConfig& config, const Program& program) {
  TcpWorld world(config);
  try {
    program(world);
  } catch (const PeerLost& e) {
    if (world.broken()) throw;
    world.abort(e.what());  // nobody was lost: this program waited for one that has ended
    throw Failure(e.what());
  } catch (const std::exception& e) {
    world.abort(e.what());
    throw;
  }
  world.finish();
}

}  // namespace echelon::tcp
