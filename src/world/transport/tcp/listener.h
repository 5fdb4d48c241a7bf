#pragma once
// How connections begin: a Listener accepts peers that know the job's secret and refuses all others; `dial` connects to
// one. Both ends do TLS first (if the credentials have it), then the handshake of world/transport/tcp/handshake.h.
//
// A peer that has not proved itself costs little: nothing is allocated for it beyond a fixed buffer, it has
// `handshake_seconds` (an honest one needs milliseconds, and dials again), and at most `max_strangers` are in the
// handshake at once, at most `max_per_address` from one address: one more closes the oldest (of that address), so that
// silent connections cannot keep an honest peer out.
//
// Everything runs on the thread that runs the io_context.

#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "world/transport/tcp/asio.h"
#include "world/transport/tcp/handshake.h"
#include "world/transport/tcp/wire.h"

namespace echelon::tcp {

struct Credentials {  // what all processes of a job know
  Secret secret;
  Bytes32 job = {};
  std::shared_ptr<const Tls> tls;  // null: plain
  double handshake_seconds = 2;
  std::size_t max_strangers = 64, max_per_address = 32;
};

class Listener {
 public:
  using Judge = std::function<Verdict(const Hello&)>;       // before the proof: is this peer expected?
  using Welcome = std::function<void(Wire, const Hello&)>;  // after it
  // Why somebody who speaks Echelon's protocol was not let in; each reason at most once in five seconds.
  using Tell = std::function<void(const std::string&)>;

  Listener(asio::ip::tcp::acceptor acceptor, Credentials credentials, Judge judge, Welcome welcome, Tell tell = {});
  ~Listener();  // closes
  Listener(const Listener&) = delete;
  void close();

 private:
  struct State;
  static asio::awaitable<void> listen(std::shared_ptr<State> state);
  static asio::awaitable<void> receive(std::shared_ptr<State> state, std::uint64_t number);
  std::shared_ptr<State> state_;
};

// The other side refuses, and will refuse again. The text is for the user.
class Refused : public Failure {
  using Failure::Failure;
};

// Nobody has listened at the address for `closed_seconds`.
class NobodyListens : public Failure {
  using Failure::Failure;
};

// Tries until `deadline`, then throws Failure with the last reason; Refused at once. Fills in hello's nonce and job.
asio::awaitable<Wire> dial(asio::ip::tcp::endpoint to, const Credentials& credentials, Hello hello,
                           std::chrono::steady_clock::time_point deadline,
                           double closed_seconds = std::numeric_limits<double>::infinity());

// Runs `action` after that time unless it goes out of scope before.
class Alarm {
 public:
  Alarm(asio::any_io_executor executor, double seconds, std::function<void()> action);
  ~Alarm();
  Alarm(const Alarm&) = delete;

 private:
  asio::steady_timer timer_;
  std::shared_ptr<bool> armed_;
};

inline std::chrono::steady_clock::duration seconds_duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace echelon::tcp
