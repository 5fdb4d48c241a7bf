#include "world/transport/tcp/listener.h"

#include <sys/socket.h>

#include <algorithm>
#include <map>

namespace echelon::tcp {

using asio::use_awaitable;
using asio::ip::tcp;

struct Listener::State {
  struct Stranger {
    std::shared_ptr<Wire> wire;
    std::string address;
  };
  using Strangers = std::map<std::uint64_t, Stranger>;  // the first is the one that came first

  State(tcp::acceptor a, Credentials g, Judge j, Welcome w, Tell t)
      : acceptor(std::move(a)),
        credentials(std::move(g)),
        judge(std::move(j)),
        welcome(std::move(w)),
        tell(std::move(t)) {}

  tcp::acceptor acceptor;
  Credentials credentials;
  Judge judge;
  Welcome welcome;
  Tell tell;
  bool open = true;
  std::uint64_t next = 0;
  Strangers strangers;
  std::map<std::string, std::chrono::steady_clock::time_point, std::less<>> told;  // when, by reason

  void send_away(Strangers::iterator stranger) {
    std::error_code ignored;
    stranger->second.wire->socket().close(ignored);  // its conversation ends with an error
    strangers.erase(stranger);
  }
  // Makes room for one more from that address.
  void make_room(const std::string& address) {
    const auto from_there = [&](const auto& s) { return s.second.address == address; };
    const auto so_many = static_cast<std::size_t>(std::ranges::count_if(strangers, from_there));
    if (so_many >= credentials.max_per_address)
      send_away(std::ranges::find_if(strangers, from_there));
    else if (strangers.size() >= credentials.max_strangers)
      send_away(strangers.begin());
  }
  void say(const std::string& address, std::string_view reason) {
    if (!tell) return;
    const auto now = std::chrono::steady_clock::now();
    const auto [last, first_time] = told.emplace(reason, now);
    if (!first_time && now - last->second < std::chrono::seconds(5)) return;
    last->second = now;
    tell(fmt::format("{} {}", address, reason));
  }
};

namespace {

asio::awaitable<void> pause(double seconds) {
  asio::steady_timer timer(co_await asio::this_coro::executor, seconds_duration(seconds));
  co_await timer.async_wait(use_awaitable);
}

asio::awaitable<void> shake_tls(Wire& wire) {
  for (Flow flow = wire.handshake(); flow != Flow::done; flow = wire.handshake()) co_await wire.wait_for(flow);
}

// The first byte that the other side sends, which stays where it is.
asio::awaitable<std::byte> look_at_first_byte(Wire& wire) {
  co_await wire.wait_for(Flow::wants_input);
  std::byte first{};
  if (::recv(wire.socket().native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1) fail("the other side hung up");
  co_return first;
}

// What has come so far: a connection that is closed with bytes unread is reset, and the last words are lost.
void drain(Wire& wire) {
  std::array<std::byte, 4096> ignored;
  (void)::recv(wire.socket().native_handle(), ignored.data(), ignored.size(), MSG_DONTWAIT);
}

void close_socket(Wire& wire) {
  std::error_code ignored;
  wire.socket().close(ignored);
}

// What the proofs bind: the TLS connection, or nothing.
std::vector<std::byte> channel_of(Wire& wire) {
  if (!wire.tls()) return {};
  const Bytes32 binding = wire.tls()->channel_binding();
  return {binding.begin(), binding.end()};
}

std::string explain(const Challenge& challenge) {
  switch (challenge.verdict) {
    case Verdict::welcome: break;
    case Verdict::other_version:
      return fmt::format(
          "it speaks version {} of the protocol, this program version {}: use the same Echelon on all "
          "machines",
          challenge.version, protocol_version);
    case Verdict::other_job: return "another job is there: give all its processes the same id, or use another port";
    case Verdict::not_expected: return "it does not expect this rank";
    case Verdict::too_many: return "it has no place left";
    case Verdict::needs_tls:
      return "it encrypts its connections with TLS and this side does not: start all machines of the job with --tls, "
             "or none";
    case Verdict::no_tls:
      return "it does not encrypt its connections and this side does, with TLS: start all machines of the job with "
             "--tls, or none";
  }
  return "no reason given";
}

// From the first knock to the proof. Returns the wire on which the listener is to answer it.
asio::awaitable<std::shared_ptr<Wire>> knock(tcp::endpoint to, const Credentials& credentials, Hello hello,
                                             double seconds) {
  const auto executor = co_await asio::this_coro::executor;
  tcp::socket socket(executor);
  socket.open(to.protocol());
  auto wire = std::make_shared<Wire>(std::move(socket));
  const Alarm alarm(executor, seconds, [wire] { close_socket(*wire); });
  co_await wire->socket().async_connect(to, use_awaitable);
  if (wire->socket().local_endpoint() == wire->socket().remote_endpoint()) fail("no program listens there");
  if (credentials.tls) {
    wire->use_tls(credentials.tls->connect(wire->socket().native_handle()));
    (void)wire->handshake();  // says the first words
    if (co_await look_at_first_byte(*wire) == first_plain_byte) {
      wire->use_tls(nullptr);
      ChallengeBytes answer;
      co_await wire->read_all(answer);
      throw Refused(explain(decode_challenge(answer)));
    }
    co_await shake_tls(*wire);
  }
  const auto channel = channel_of(*wire);
  hello.nonce = make_nonce();
  hello.job = credentials.job;
  co_await wire->write_all(encode(hello));
  ChallengeBytes answer;
  co_await wire->read_all(answer);
  const Challenge challenge = decode_challenge(answer);
  if (challenge.verdict == Verdict::too_many) fail("{}", explain(challenge));
  if (challenge.verdict != Verdict::welcome) throw Refused(explain(challenge));
  if (!same(challenge.proof, listener_proof(credentials.secret, hello, challenge.nonce, channel))) {
    co_await wire->write_all(Bytes32{});
    throw Refused("it does not have the same secret (or the connection is intercepted)");
  }
  co_await wire->write_all(dialler_proof(credentials.secret, hello, challenge.nonce, channel));
  co_return wire;
}

// Once the listener may have the proof, it alone decides: it answers or hangs up. The side that dials must not stop
// waiting before the very end, for the other side may count on this connection.
asio::awaitable<void> be_let_in(std::shared_ptr<Wire> wire, double seconds) {
  const auto executor = co_await asio::this_coro::executor;
  const Alarm alarm(executor, seconds, [wire] { close_socket(*wire); });
  std::byte word{};
  co_await wire->read_all({&word, 1});
  if (word != entered) fail("it answers with an unknown byte");
}

}  // namespace

Alarm::Alarm(asio::any_io_executor executor, double seconds, std::function<void()> action)
    : timer_(std::move(executor), seconds_duration(seconds)), armed_(std::make_shared<bool>(true)) {
  timer_.async_wait([armed = armed_, action = std::move(action)](std::error_code) {
    if (*armed) action();
  });
}

Alarm::~Alarm() {
  *armed_ = false;
  timer_.cancel();
}

Listener::Listener(tcp::acceptor acceptor, Credentials credentials, Judge judge, Welcome welcome, Tell tell)
    : state_(std::make_shared<State>(std::move(acceptor), std::move(credentials), std::move(judge), std::move(welcome),
                                     std::move(tell))) {
  state_->acceptor.non_blocking(true);
  asio::co_spawn(state_->acceptor.get_executor(), listen(state_), asio::detached);
}

Listener::~Listener() { close(); }

void Listener::close() {
  state_->open = false;
  std::error_code ignored;
  state_->acceptor.close(ignored);
  while (!state_->strangers.empty()) state_->send_away(state_->strangers.begin());
}

asio::awaitable<void> Listener::listen(std::shared_ptr<State> state) {
  while (state->open) {
    std::error_code error;
    tcp::socket socket = co_await state->acceptor.async_accept(asio::redirect_error(use_awaitable, error));
    if (!state->open) break;
    if (error) {  // out of descriptors, or the other one has gone already
      co_await pause(0.01);
      continue;
    }
    const auto from = socket.remote_endpoint(error);
    if (error) continue;  // it has gone
    std::string address = from.address().to_string();
    state->make_room(address);
    const std::uint64_t number = state->next++;
    state->strangers.emplace(number, State::Stranger{std::make_shared<Wire>(std::move(socket)), std::move(address)});
    asio::co_spawn(state->acceptor.get_executor(), receive(state, number), asio::detached);
  }
}

asio::awaitable<void> Listener::receive(std::shared_ptr<State> state, std::uint64_t number) {
  const auto found = state->strangers.find(number);
  if (found == state->strangers.end()) co_return;
  const auto [wire, address] = found->second;
  const Credentials& credentials = state->credentials;
  try {
    const Alarm alarm(state->acceptor.get_executor(), credentials.handshake_seconds, [wire] { close_socket(*wire); });
    Challenge challenge;
    const std::byte first_byte = co_await look_at_first_byte(*wire);
    if (!credentials.tls && first_byte == first_tls_byte) {
      state->say(address, "connects with TLS, which this job does not use: start all machines with --tls, or none");
      drain(*wire);
      challenge.verdict = Verdict::no_tls;
      co_await wire->write_all(encode(challenge));
      fail("it uses TLS");
    }
    const bool without_tls = credentials.tls && first_byte == first_plain_byte;
    if (credentials.tls && !without_tls) {
      wire->use_tls(credentials.tls->accept(wire->socket().native_handle()));
      co_await shake_tls(*wire);
    }
    const auto channel = channel_of(*wire);
    HelloBytes first;
    co_await wire->read_all(first);
    const Hello hello = decode_hello(first);
    if (without_tls) {
      state->say(address, "connects without TLS, which this job uses: start all machines with --tls, or none");
      challenge.verdict = Verdict::needs_tls;
    } else if (hello.version != protocol_version) {
      state->say(address, "has another version of Echelon: use the same on all machines");
      challenge.verdict = Verdict::other_version;
    } else if (!same(hello.job, credentials.job)) {
      state->say(address, "asks for another job: give all machines of this one the same --rdzv-id");
      challenge.verdict = Verdict::other_job;
    } else {
      challenge.verdict = state->judge(hello);
    }
    if (challenge.verdict == Verdict::welcome) {
      challenge.nonce = make_nonce();
      challenge.proof = listener_proof(credentials.secret, hello, challenge.nonce, channel);
    }
    co_await wire->write_all(encode(challenge));
    if (challenge.verdict == Verdict::welcome) {
      Bytes32 proof;
      co_await wire->read_all(proof);
      const bool proven = same(proof, dialler_proof(credentials.secret, hello, challenge.nonce, channel));
      if (!proven) state->say(address, "does not have this job's secret: give all its machines the same one");
      if (proven && state->open && state->judge(hello) == Verdict::welcome) {
        co_await wire->write_all({&entered, 1});  // one byte into an empty buffer: nothing happens in between
        state->strangers.erase(number);
        state->welcome(std::move(*wire), hello);
        co_return;
      }
    }
  } catch (const std::exception&) {
    // A stranger's mistakes are not ours: the connection ends, nothing else happens.
  }
  close_socket(*wire);
  state->strangers.erase(number);
}

asio::awaitable<Wire> dial(tcp::endpoint to, const Credentials& credentials, Hello hello,
                           std::chrono::steady_clock::time_point deadline, double closed_seconds) {
  std::string reason = "no answer in time";
  const auto seconds_left = [&] {
    return std::chrono::duration<double>(deadline - std::chrono::steady_clock::now()).count();
  };
  double open_left = seconds_left();  // how much was left when somebody last listened there
  for (;;) {
    const double left = seconds_left();
    if (left <= 0) fail("{}", reason);
    bool closed = false;
    try {
      const auto wire = co_await knock(to, credentials, hello, std::min(left, credentials.handshake_seconds));
      co_await be_let_in(wire, std::max(seconds_left(), 0.0));
      co_return std::move(*wire);
    } catch (const Refused&) {
      throw;
    } catch (const std::system_error& e) {
      closed = e.code() == asio::error::connection_refused;
      reason = e.code() == asio::error::operation_aborted ? "no answer in time" : e.code().message();
    } catch (const Failure& e) {
      reason = e.what();
    }
    if (!closed) open_left = left;
    if (open_left - left > closed_seconds) throw NobodyListens(reason);
    co_await pause(std::min(std::max(left, 0.0), 0.05));
  }
}

}  // namespace echelon::tcp
