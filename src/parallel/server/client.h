#pragma once
// A worker of parameter servers: pushes its contributions to them, takes their answers, and keeps its own copy of the
// weights in between. When it waits for an answer:
//
//   in rounds            after every push, until the round is closed
//   async, delay, value  after every n_fetch-th step; the servers may hold the answer back
//   ssp                  when its copy would miss updates that the next step must see
//   essp                 the same, but it never asks: fresh parameters come by themselves, and are looked for before
//                        each step
//
// A step that gets no parameters moves the worker's own copy by its own gradient, so it sees its own writes.

#include <memory>
#include <utility>
#include <vector>

#include "parallel/exchange.h"
#include "parallel/exchanges/oplog.h"
#include "parallel/server/budget.h"
#include "parallel/server/chain.h"
#include "parallel/server/factors.h"
#include "parallel/server/keys.h"
#include "parallel/server/overlap.h"
#include "parallel/server/relay.h"
#include "parallel/server/shard.h"
#include "parallel/team/message_wait.h"

namespace echelon::exchanges {

class ServerClient : public Exchange {
 public:
  ServerClient(const ServerSettings& settings, ExchangeParts parts);
  ~ServerClient() override;

  void before_step(const StepInfo& info) override;
  double exchange(const StepInfo& info) override;
  void after_step(const StepInfo& info) override;
  void on_gradient() override { worker_->on_gradient(); }
  bool keep_going() override;
  std::int64_t missed_steps() override { return std::exchange(missed_, 0) * parts_.when.tau; }
  void leave() override;
  void drain() override;
  void read_model(std::span<float> out) override;
  std::vector<StateSpan> state() override;
  std::vector<Figure> figures() override;

 private:
  std::vector<Address> writers() const;
  void make_shards();
  Address gate(std::size_t key) const;
  double exchange_softly(const StepInfo& info);
  void push_most_significant(const StepInfo& info, bool asks);
  void push_pending(const StepInfo& info);
  void post_push(std::uint32_t k, const MessageHeader& head, std::span<const std::byte> bytes);
  void go_on_without(const Message& message);
  void tell_of_lost(Rank head, LostMembers before, LostMembers now) const;
  bool is_flushed(const Message& message);
  void drain_sites();
  // server_overlap.cpp
  void plan_overlap();
  void plan_deferring();
  void begin_overlapped(const StepInfo& info);
  void carry_messages(const StepInfo& info, std::uint64_t number, bool asks);
  void end_overlapped();
  void let_everybody_go();
  void wait_for_range(Range range);
  void note_arrival(std::uint32_t k);
  std::vector<std::size_t> answering_order(std::size_t first, std::size_t count) const;
  bool gradients() const { return parts_.rule->traits().quantity == RuleTraits::Quantity::gradient; }
  bool asks(const StepInfo& info) const;
  void push_or_pull(const StepInfo& info);
  void merge(const StepInfo& info);  // the gradient into what will be pushed
  void push_all(const StepInfo& info, bool asks);
  std::span<const float> contribution(std::uint32_t k, double share);
  void push_key(std::uint32_t k, const StepInfo& info, bool asks);
  void flush_servers();
  void agree_on_round();
  void expect_answers();  // of all keys
  void wait_for_answers();
  void take_next();
  Rank latecomer() const;
  void take(Message& message);
  void take_answer(Message& message);
  std::int64_t seen() const;

  ServerSettings settings_;
  ExchangeParts parts_;
  std::vector<Key> keys_;
  std::vector<Address> gates_;         // where to push, by key
  std::vector<std::int64_t> seen_;     // of everybody's steps, by key
  std::vector<std::int64_t> version_;  // of the own copy, by key, as it was when it left the server
  std::vector<std::int64_t> own_in_;   // own pushes that were in it
  std::unique_ptr<WorkerSide> worker_;
  std::vector<std::unique_ptr<Codec>> encoders_;  // by key; null: plain numbers
  std::vector<PushFilter> filters_;               // by key; none without filters
  std::unique_ptr<FactorPushes> factors_;         // null: plain numbers
  std::unique_ptr<SliceBudget> budget_;           // order magnitude
  Buffer pending_;                                // the same: gradients times their rates that have not been pushed
  std::vector<double> pending_rate_;              // the same: the sum of these rates, by key
  std::vector<float> significance_;               // by key
  std::vector<UnansweredPush> unanswered_;        // by key; replicated servers only
  std::vector<LostMembers> lost_servers_;         // by key: who of its chain has lost its state
  bool asks_ = false;                             // for answers to the present step's push
  double out_of_order_ = 0;                       // answers that came after one from the same server that is read later
  std::vector<int> sites_;                        // by rank; sync approximate only
  Buffer contribution_, bytes_;
  Buffer merged_;            // n_push > 1: gradients times their rates, since the last push
  double merged_rate_ = 0;   // the sum of these rates
  OpLog own_steps_;          // essp
  std::int64_t pushes_ = 0;  // times that something was pushed
  std::int64_t steps_ = 0;
  double epoch_ = 0;            // of the last step
  std::int64_t round_ = 0;      // to which the next contribution belongs
  std::int64_t pushed_at_ = 0;  // sync soft: the step of the last push
  std::int64_t missed_ = 0;     // rounds that were closed without this worker, since its last one
  std::int64_t hand_in_ = -1;   // the last round of which a server wanted what there was
  std::int64_t warm_ = 0;       // whether the warm start is over
  int awaited_ = 0, flushes_ = 0;
  std::vector<char> answer_due_, flush_due_;  // by key
  MessageWait wait_policy_;
  double waited_ = 0, parts_done_ = 0, parts_count_ = 0, ages_ = 0;  // figures
  std::vector<std::unique_ptr<ServerShard>> shards_;  // on this rank: its own, then those that it replicates
  std::unique_ptr<ServerRelay> relay_;                // null where everybody writes to servers
  std::unique_ptr<ServerOverlap> overlap_;            // null: messages go and come after backward. Last: it has a task
};

}  // namespace echelon::exchanges
