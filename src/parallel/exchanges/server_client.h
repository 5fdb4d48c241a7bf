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
#include "parallel/exchanges/server_keys.h"
#include "parallel/exchanges/server_shard.h"

namespace echelon::exchanges {

class ServerClient : public Exchange {
 public:
  ServerClient(const ServerSettings& settings, ExchangeParts parts);

  void before_step(const StepMoment& moment) override;
  double exchange(const StepMoment& moment) override;
  void after_step(const StepMoment& moment) override;
  bool keep_going() override;
  std::int64_t missed_steps() override { return std::exchange(missed_, 0) * parts_.period.tau; }
  void leave() override;
  void settle() override;
  void read_model(std::span<float> out) override;
  std::vector<StateSpan> state() override;
  std::vector<Figure> figures() override;

 private:
  bool gradients() const { return parts_.rule->traits().moment == RuleTraits::Moment::gradient; }
  bool asks(const StepMoment& moment);
  void merge(const StepMoment& moment);  // the gradient into what will be pushed
  void push_all(const StepMoment& moment, bool asks);
  void push_key(std::uint32_t k, const StepMoment& moment, bool asks);
  void flush_servers();
  void agree_on_round();
  void wait_for_answers();
  void take_next();
  void take(Letter& letter);
  void take_answer(Letter& letter);
  std::int64_t seen() const;

  ServerSettings settings_;
  ExchangeParts parts_;
  std::vector<Key> keys_;
  std::vector<std::int64_t> seen_;     // of everybody's steps, by key
  std::vector<std::int64_t> version_;  // of the own copy, by key, as it was when it left the server
  std::vector<std::int64_t> own_in_;   // own pushes that were in it
  std::unique_ptr<WorkerSide> worker_;
  std::vector<std::unique_ptr<Codec>> encoders_;  // by key; null: plain numbers
  Buffer contribution_, bytes_;
  Buffer merged_;            // n_push > 1: gradients times their rates, since the last push
  double merged_rate_ = 0;   // the sum of these rates
  OpLog own_steps_;          // essp
  std::int64_t pushes_ = 0;  // times that something was pushed
  std::int64_t steps_ = 0;
  std::int64_t round_ = 0;     // to which the next contribution belongs
  std::int64_t missed_ = 0;    // rounds that were closed without this worker, since its last one
  std::int64_t hand_in_ = -1;  // the last round of which a server wanted what there was
  std::int64_t warm_ = 0;      // whether the warm start is over
  int awaited_ = 0, flushes_ = 0;
  double waited_ = 0, parts_done_ = 0, parts_count_ = 0, ages_ = 0;  // figures
  std::unique_ptr<ServerShard> shard_;                               // null on ranks without one
};

}  // namespace echelon::exchanges
