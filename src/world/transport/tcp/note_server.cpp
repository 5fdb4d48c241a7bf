#include "world/transport/tcp/note_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "world/transport/tcp/endpoint.h"
#include "world/transport/tcp/notes.h"
#include "world/transport/tcp/read_options.h"

namespace echelon::tcp {

using asio::ip::tcp;

int listen_at_endpoint(const TcpOptions& options) {
  const HostAndPort at = parse_endpoint(options.endpoint);
  asio::io_context io;
  std::error_code error;
  auto acceptor = try_listen(io, resolve(io, at.host, at.port), error);
  return acceptor ? acceptor->release() : -1;
}

void close_listener(int listener) { ::close(listener); }

void check_secret(const TcpOptions& options) {
  check_options(options, false);
  make_credentials(options, false);
}

void serve_notes(int listener, const TcpOptions& options,
                 const std::function<std::string(const std::string&)>& answer) {
  const Credentials credentials = make_credentials(options, false);
  asio::io_context io(1);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &size);
  const auto attend = [&](std::shared_ptr<Wire> wire) -> asio::awaitable<void> {
    try {
      for (;;) {
        const std::string note = co_await read_note(*wire, longest_note);
        std::string text = answer(note);
        co_await write_note(*wire, std::move(text));
      }
    } catch (const std::exception&) {  // it hung up
    }
  };
  Listener at(
      tcp::acceptor(io, bound.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), listener), credentials,
      [](const Hello& hello) { return hello.role == Role::node ? Verdict::welcome : Verdict::not_expected; },
      [&](Wire wire, const Hello&) {
        asio::co_spawn(io, attend(std::make_shared<Wire>(std::move(wire))), asio::detached);
      });
  for (;;) io.run(), io.restart();
}

struct NoteClient::State {
  HostAndPort at;
  Credentials credentials;
  double seconds;
  asio::io_context io{1};
  std::optional<Wire> wire = {};

  asio::awaitable<std::string> exchange(std::string note, std::chrono::steady_clock::time_point deadline) {
    if (!wire) {
      Hello hello;
      hello.role = Role::node;
      const tcp::endpoint address = resolve(io, at.host, at.port);
      Wire made = co_await dial(address, credentials, hello, deadline);
      wire.emplace(std::move(made));
    }
    co_await write_note(*wire, std::move(note));
    std::string answer = co_await read_note(*wire, longest_note);
    co_return answer;
  }
};

NoteClient::NoteClient(const TcpOptions& options, double seconds)
    : state_(new State{parse_endpoint(options.endpoint), make_credentials(options, false), seconds}) {}
NoteClient::~NoteClient() = default;

std::string NoteClient::ask(const std::string& note) {
  State& s = *state_;
  const auto deadline = std::chrono::steady_clock::now() + seconds_duration(s.seconds);
  std::optional<std::string> answer;
  std::exception_ptr problem;
  s.io.restart();
  asio::co_spawn(s.io, s.exchange(note, deadline), [&](std::exception_ptr e, std::string text) {
    problem = e;
    if (!e) answer = std::move(text);
  });
  while (!answer && !problem && std::chrono::steady_clock::now() < deadline) s.io.run_one_until(deadline);
  if (answer) return *std::move(answer);
  if (!problem) {  // too late: the connection is of no use any more, and ends what waits on it
    if (s.wire) {
      std::error_code ignored;
      s.wire->socket().close(ignored);
    }
    while (!problem && !answer) s.io.run_one();
  }
  s.wire.reset();
  const std::string where = fmt::format("{}:{}", s.at.host, s.at.port);
  try {
    if (problem) std::rethrow_exception(problem);
  } catch (const Refused& e) {
    bad_input("the launcher at {} refuses this one: {}", where, e.what());
  } catch (const BadInput&) {
    throw;
  } catch (const std::exception& e) {
    fail("the launcher at {} does not answer: {}", where, e.what());
  }
  fail("the launcher at {} does not answer within {:g} s", where, s.seconds);
}

}  // namespace echelon::tcp
