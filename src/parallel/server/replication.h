#pragma once
// Copies of servers on other ranks, as workers and servers see them. The base classes are for servers without copies.
//
//   chain   every server has replicas, which make the same updates; any may lose its state     chain.h, chain_*.cpp
//   sites   every site has servers of its own; they send each other what is significant        sites.h, site_mirror.*
//
// A WorkerReplication belongs to a ServerClient and is used where its messages are sent and taken; a ShardReplication
// belongs to a ServerShard, whose task uses it.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "parallel/server/keys.h"
#include "parallel/server/parameter_copy.h"
#include "parallel/server/shard_core.h"

namespace echelon::exchanges {

// Which members of a chain have lost their state: a bit for each position.
using LostMembers = std::int64_t;

class WorkerReplication {
 public:
  explicit WorkerReplication(const ServerMap& map) : map_(map) {}
  virtual ~WorkerReplication() = default;

  virtual Address push_to(std::uint32_t key) const { return map_.push_to[key]; }
  // A message for a key was sent that an answer is expected to: a push or an `await`.
  virtual void posted(const MessageHeader&, std::span<const std::byte> /*bytes*/) {}
  virtual void flushing(MessageHeader&) {}  // that flush is about to be sent
  // False: a copy has answered the same before.
  virtual bool is_new_answer(const Message&) { return true; }
  virtual bool is_new_flushed(const Message&) { return true; }
  virtual void server_lost(const Message& message);          // `lost`
  virtual void learn_of_lost(Rank /*head*/, LostMembers) {}  // of that chain; nothing is on its way
  // Which server answers for a key.
  struct Answerer {
    Rank rank = 0;
    int position = 0;  // in its chain
  };
  virtual Answerer answerer(std::uint32_t key) const { return {map_.push_to[key].rank, 0}; }
  // Ranks whose servers send changes to this rank's: everything has come when they have answered a flush.
  virtual std::vector<Rank> mirrors() const { return {}; }
  virtual int models() const { return 1; }  // of which the mean is the model
  virtual std::vector<StateSpan> state() { return {}; }

 protected:
  const ServerMap& map_;
};

// How a message is to be taken.
struct Delivery {
  bool handle = true;         // false: it has been dealt with
  bool seen = false;          // its contribution is merged already
  bool answer_again = false;  // even so its sender needs the answer
};

class ShardReplication {
 public:
  virtual ~ShardReplication() = default;
  // Every message comes here first. Its sender and type may be changed to those of the original.
  virtual Delivery receive(Message&) { return {}; }
  virtual bool answers() const { return true; }                        // this copy sends the answers
  virtual bool repeats_answers() const { return false; }               // answers may have to be sent again
  virtual bool holds_answers(const ShardKey&) const { return false; }  // nobody may be answered about that key now
  virtual bool has_the_model() const { return true; }                  // this copy's model counts
  virtual void before_update(const ShardKey&) {}                       // of its shared side
  virtual void after_update(ShardKey&) {}
  virtual void writer_left() {}
  virtual Rank latecomer() const { return -1; }  // whom `holds_answers` waits for
  virtual bool is_lost() const { return false; }
  virtual void lose_state() {}                // and tells whoever writes here
  virtual void learn_of_lost(LostMembers) {}  // of its chain; nothing is on its way
  virtual std::vector<StateSpan> state() { return {}; }
};

std::unique_ptr<WorkerReplication> make_worker_replication(const ServerSettings& settings, const ExchangeParts& parts,
                                                           const ServerMap& map, const ParameterCopy& copy);
// `position` in its chain. `may_answer` is called when those who wait for an answer may perhaps have it now.
std::unique_ptr<ShardReplication> make_shard_replication(const ServerSettings& settings, const ServerMap& map,
                                                         int position, ShardCore& core,
                                                         std::function<void()> may_answer);

}  // namespace echelon::exchanges
