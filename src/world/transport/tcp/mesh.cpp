#include "world/transport/tcp/mesh.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "world/os/tasks.h"

namespace echelon::tcp {

namespace {

using asio::ip::tcp;

constexpr std::uint32_t epoch = 1;
constexpr std::size_t longest_reason = 1000;
constexpr int listen_backlog = 1024;
constexpr double neighbour_poll_seconds = 0.05;

}  // namespace

Mesh::Mesh(const RankConfig& config, FirstFailure& failure, TransferPool& pool, Clock& clock,
           std::function<void()> on_failure)
    : config_(config),
      rank_(config.rank),
      size_(static_cast<int>(config.table.peers.size())),
      failure_(failure),
      pool_(pool),
      clock_(clock),
      on_failure_(std::move(on_failure)),
      waker_(io_, ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      last_beat_(clock.seconds()),
      links_(config.table.peers.size()),
      missing_(size_ - 1) {
  status_.activity.reserve(RankStatus::activity_bytes);
  Credentials credentials = config.credentials;
  credentials.secret = derive(credentials.secret, "session", config.table.session);
  // All other ranks may be in the handshake at once, and come from one address.
  credentials.max_strangers = std::max<std::size_t>(credentials.max_strangers, 2 * links_.size());
  credentials.max_per_address = std::max<std::size_t>(credentials.max_per_address, 2 * links_.size());
  tcp::acceptor acceptor(io_);
  const bool v6 = config.table.peers[static_cast<std::size_t>(rank_)].address.find(':') != std::string::npos;
  acceptor.assign(v6 ? tcp::v6() : tcp::v4(), config.listener);
  acceptor.listen(listen_backlog);
  if (missing_ > 0) {
    listener_ = std::make_unique<Listener>(
        std::move(acceptor), credentials,
        [this](const Hello& hello) {
          const bool expected = hello.role == Role::rank && hello.to == rank_ && hello.from > rank_ &&
                                hello.from < size_ && !links_[static_cast<std::size_t>(hello.from)];
          return expected ? Verdict::welcome : Verdict::not_expected;
        },
        [this](Wire wire, const Hello& hello) { add_link(hello.from, std::move(wire)); });
    for (int peer = 0; peer < rank_; ++peer) asio::co_spawn(io_, connect(peer, credentials), asio::detached);
  } else {
    whole_ = true;
  }
  listen_for_wakes();
  beat();
  thread_ = spawn_thread("tcp", [this] { io_.run(); });
}

template <typename Act>
void Mesh::each_link(Act&& act) {
  for (auto& link : links_) {
    if (link) act(*link);
  }
}

template <typename Condition>
bool Mesh::wait_for(double seconds, Condition condition) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds), condition);
}

// ---- joining

asio::awaitable<void> Mesh::connect(int peer, Credentials credentials) {
  const Peer& at = config_.table.peers[static_cast<std::size_t>(peer)];
  Hello hello;
  hello.role = Role::rank;
  hello.from = rank_;
  hello.to = peer;
  try {
    const tcp::endpoint endpoint(asio::ip::make_address(at.address), at.port);
    const auto deadline = std::chrono::steady_clock::now() + seconds_duration(config_.mesh_seconds);
    add_link(peer, co_await dial(endpoint, credentials, hello, deadline));
  } catch (const std::exception& e) {
    lost(peer, fmt::format("no connection to {}:{}: {}", at.address, at.port, e.what()));
  }
}

void Mesh::add_link(int peer, Wire wire) {
  auto& link = links_[static_cast<std::size_t>(peer)];
  link = std::make_unique<Link>(*this, pool_, clock_, rank_, peer, epoch, std::move(wire));
  if (failure_.known()) {
    link->say(FrameKind::lost, failure_.reason(), lost_sequence(failure_.rank(), failure_.kind()));
    link->fail_all();
  }
  link->start();
  if (--missing_ > 0) return;
  listener_->close();  // from now on no port is open
  const std::lock_guard lock(mutex_);
  whole_ = true;
  changed_.notify_all();
}

// A rank of this machine that died before it was connected to this one is not missed by its connection, but its
// launcher has recorded it.
void Mesh::expect_neighbours() {
  const int dead = config_.neighbours->rank();
  if (dead < 0 || dead >= size_ || dead == rank_) return;
  const auto missing = std::make_shared<bool>(false);
  on_io_thread([this, dead, missing] {
    *missing = !links_[static_cast<std::size_t>(dead)];
    if (*missing) lost(dead, config_.neighbours->reason(), config_.neighbours->kind());
  });
  if (*missing) failure_.throw_peer_lost("joining");
}

void Mesh::join() {
  int known_for = 0;  // looks; what a neighbour has said before its end is given some time to arrive
  const auto wait_with_neighbours = [&](double seconds, auto condition) {
    bool fulfilled = false;
    for (double waited = 0; !fulfilled && waited < seconds; waited += neighbour_poll_seconds) {
      fulfilled = wait_for(neighbour_poll_seconds, condition);
      if (!fulfilled && config_.neighbours && config_.neighbours->known() && ++known_for > 2) expect_neighbours();
    }
    return fulfilled;
  };
  const bool decided = wait_with_neighbours(config_.mesh_seconds + 1, [&] { return whole_ || failure_.known(); });
  // A rank that has failed may have joined before: its program ran, so this rank's program runs too, and hears of the
  // failure where it waits.
  if (failure_.known() && wait_with_neighbours(1, [&] { return whole_; })) return;
  if (failure_.known()) failure_.throw_peer_lost("joining");
  if (decided) return;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (static_cast<int>(i) != rank_ && !links_[i])
      throw PeerLost(static_cast<int>(i), fmt::format("it did not connect within {:g} s", config_.mesh_seconds),
                     "joining");
  }
}

Link& Mesh::link(int rank) {
  if (rank < 0 || rank >= size_ || rank == rank_)
    fail("rank {} of {} has no connection to rank {}", rank_, size_, rank);
  return *links_[static_cast<std::size_t>(rank)];
}

// ---- the I/O thread's work

void Mesh::wake() {
  if (woken_.exchange(true)) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(waker_.native_handle(), &one, sizeof one);
}

void Mesh::listen_for_wakes() {
  waker_.async_wait(asio::posix::stream_descriptor::wait_read, [this](std::error_code error) {
    if (error) return;
    std::uint64_t count;
    [[maybe_unused]] const auto n = ::read(waker_.native_handle(), &count, sizeof count);
    woken_.store(false);
    each_link([](Link& link) { link.pump(); });
    listen_for_wakes();
  });
}

void Mesh::beat() {
  beat_timer_.expires_after(seconds_duration(config_.beat_seconds));
  beat_timer_.async_wait([this](std::error_code error) {
    if (error) return;
    const double now = clock_.seconds();
    // If this process was stopped or starved, the others' frames may still wait to be read.
    const bool was_away = now - std::exchange(last_beat_, now) > 2 * config_.beat_seconds + 0.2;
    each_link([&](Link& link) {
      if (was_away) link.forgive(now);
      link.beat();
      link.watch(now, config_.silence_seconds);
    });
    beat();
  });
}

void Mesh::changed() {
  bool over = true, quiet = true, closed = true;
  each_link([&](Link& link) {
    over = over && link.over();
    quiet = quiet && link.quiet();
    closed = closed && link.closed();
  });
  const std::lock_guard lock(mutex_);
  over_ = over;
  quiet_ = quiet;
  closed_ = closed;
  changed_.notify_all();
}

// Waits until it is done, which depends on this process alone: on a busy machine that may take longer than one would
// wait for other ranks.
void Mesh::on_io_thread(std::function<void()> act) {
  const auto done = std::make_shared<std::promise<void>>();
  asio::post(io_, [done, act = std::move(act)] {
    act();
    done->set_value();
  });
  done->get_future().wait_for(std::chrono::seconds(60));
}

// ---- status and failure

void Mesh::set_status(const RankStatus& status) {
  const std::lock_guard lock(mutex_);
  if (status_ == status) return;
  status_.activity.assign(status.activity);
  status_.waiting_for = status.waiting_for;
  status_version_.fetch_add(1);
}

RankStatus Mesh::status_now(std::uint64_t& version) {
  const std::lock_guard lock(mutex_);
  version = status_version_.load();
  return status_;
}

void Mesh::lost(int rank, const std::string& reason, FailureKind kind) {
  if (!failure_.set(rank, reason, kind)) return;
  fail_links();
  each_link(
      [&](Link& link) { link.say(FrameKind::lost, reason.substr(0, longest_reason), lost_sequence(rank, kind)); });
  changed();
}

void Mesh::fail_links() {
  on_failure_();
  each_link([](Link& link) { link.fail_all(); });
}

void Mesh::abort(std::string_view reason, FailureKind kind) {
  const std::string text(reason.substr(0, longest_reason));
  if (!failure_.set(rank_, text, kind)) return;
  fail_links();
  asio::post(io_, [this, text, kind] {
    each_link([&](Link& link) { link.say(FrameKind::abort, text, lost_sequence(rank_, kind)); });
    changed();
  });
}

// ---- the end

void Mesh::finish() {
  asio::post(io_, [this] {
    if (!failure_.known()) each_link([](Link& link) { link.say(FrameKind::bye, {}); });
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

void Mesh::stop() {
  io_.stop();
  thread_->join();
  thread_.reset();
}

// Reads until the other side has nothing more to say: a connection that is closed with bytes unread is reset, and then
// the other side might not get this side's last frames.
Mesh::~Mesh() {
  if (!thread_) return;
  on_io_thread([this] { changed(); });                        // after all that was said before
  if (failure_.known()) wait_for(1, [&] { return quiet_; });  // the others should hear the reason first
  on_io_thread([this] {
    each_link([](Link& link) { link.hang_up(); });
    changed();
  });
  wait_for(1, [&] { return closed_; });
  stop();
}

}  // namespace echelon::tcp
