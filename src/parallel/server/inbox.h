#pragma once
// What servers send to a worker: it takes their messages, waits for those that are due, and applies answers to the
// worker's copy of the parameters. Used by the worker's thread, or by the task that exchanges messages for it.

#include <cstdint>
#include <functional>
#include <vector>

#include "parallel/server/push_stage.h"
#include "parallel/server/replication.h"
#include "parallel/team/message_wait.h"

namespace echelon::exchanges {

class WorkerInbox {
 public:
  struct Parts {  // everything outlives it
    const ExchangeParts& parts;
    const ServerMap& map;
    WorkerSide& worker;
    KeyCodecs& codecs;
    ParameterCopy& copy;
    WorkerReplication& replication;
  };
  explicit WorkerInbox(const Parts& parts);

  // After each answer that was applied.
  std::function<void(std::uint32_t key, const MessageHeader& head)> on_answer;
  // Who keeps this worker waiting for something about a key; for messages to people.
  std::function<Rank(std::uint32_t key)> latecomer;

  void expect_answers();  // one about every key
  void expect_answers(std::span<const std::uint32_t> keys);
  bool expects_answers() const { return answers_due_ > 0; }
  void take_arrived();      // never waits
  void take_next();         // waits for one message
  void take_answers();      // waits until no answer is due
  void wait_for_answers();  // the same, and its time counts as waited
  // Waits until the copy of the parameters has seen so many steps of every worker.
  void wait_until_seen(std::int64_t steps);
  // Tells every server that nothing follows for now, and waits until all that was sent is merged.
  void flush_servers();
  void flush(const std::vector<Rank>& ranks);  // the same for the servers of other sites on these ranks
  // Asks every server for weights that the first worker's warm start has made, and waits for them.
  void wait_for_warm_start(std::int64_t updates);

  bool must_hand_in() const { return hand_in_ >= copy_.round(); }  // a server wants what there is of the open round
  double& waited() { return waited_; }                             // seconds

 private:
  void take(Message& message);
  void take_answer(Message& message);
  void take_flushed(const Message& message);
  Rank late_rank() const;

  const ExchangeParts& parts_;
  const ServerMap& map_;
  WorkerSide& worker_;
  KeyCodecs& codecs_;
  ParameterCopy& copy_;
  WorkerReplication& replication_;
  SyncTraits sync_;
  MessageWait wait_policy_;
  bool warms_up_ = false;              // it waits for a warm start, which may well take hours
  std::vector<char> due_, flush_due_;  // by key
  int answers_due_ = 0, flushes_due_ = 0;
  std::int64_t hand_in_ = -1;  // the last round of which a server wanted what there was
  double waited_ = 0;
  Buffer numbers_;  // scratch
};

}  // namespace echelon::exchanges
