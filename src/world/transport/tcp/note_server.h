#pragma once
// Short questions and answers between the launchers of a job: one of them answers, to whoever knows the job's secret.
// Connections begin as all others do (world/transport/tcp/listener.h), with the same limits for strangers.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "world/transport/tcp/join.h"

namespace echelon::tcp {

constexpr std::uint32_t longest_note = 1u << 20;

// A socket that listens at the job's endpoint, if this machine has that address and no other program does; else -1.
// Whoever gets the number closes it. BadInput if the host is unknown.
int listen_at_endpoint(const TcpOptions& options);
void close_listener(int listener);
void check_secret(const TcpOptions& options);  // BadInput if the options do not suffice to meet others

// Answers until the process ends. `answer` throws nothing; it is called by one thread.
[[noreturn]] void serve_notes(int listener, const TcpOptions& options,
                              const std::function<std::string(const std::string&)>& answer);

// Asks, over one connection that is made again when it breaks. For one thread at a time.
class NoteClient {
 public:
  NoteClient(const TcpOptions& options, double seconds);
  ~NoteClient();
  // Failure if no answer comes in `seconds`; BadInput if the other side refuses this one for good (another secret).
  std::string ask(const std::string& note);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace echelon::tcp
