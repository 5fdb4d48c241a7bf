#pragma once
// The servers of a rank in a process of their own (exchange.processes), which may be killed at any time: the chains
// whose members they are (chain.h) go on without them, and the worker beside them never notices.
//
// The process lives for a round of steps. It begins with a copy of the servers here, is given the messages that come
// for them, and sends through this rank what they have to say; at the end it hands their state back. Meanwhile those
// here stand still. If it dies, they take its place as members that have lost their state, and tell whoever writes to
// them.

#include <memory>
#include <vector>

#include "parallel/exchange.h"
#include "world/os/helper_process.h"
#include "world/os/mutex.h"

namespace echelon::exchanges {

class ServerShard;

class ServerProcess {
 public:
  // Null where ranks cannot have processes beside them (threads, a simulation, MPI): servers are tasks there.
  static std::unique_ptr<ServerProcess> make(ExchangeParts& parts);
  explicit ServerProcess(ExchangeParts& parts);
  ~ServerProcess() { close(); }
  void close();  // nothing is passed on any more, and nobody waits for the round to begin

  void add(ServerShard* shard);  // by position in a chain; null: there is none. Before the first round
  void begin_round();            // before any message of it is taken; other threads of this rank are idle
  void end_round();              // nothing is on its way: the servers here know all again, or are lost
  // A message for the server at that position. True: it was passed on; false: the server here has to handle it. Waits
  // for the round to begin.
  bool pass_on(int position, const Message& message);

 private:
  enum class State { between_rounds, runs, lost, closing };
  struct Frame;
  void serve(ByteStream& stream);
  void read_frames();
  bool read_state();
  void lose_servers();
  void set(State state);

  ExchangeParts& parts_;
  std::vector<ServerShard*> shards_;
  Mutex mutex_;  // guards the state, and who writes to the process
  State state_ = State::between_rounds;
  std::unique_ptr<Event> changed_;
  std::unique_ptr<HelperProcess> process_;
  std::unique_ptr<Task> reader_;  // of what the process says
  bool has_state_ = false;
};

}  // namespace echelon::exchanges
