#pragma once
// What a step of training will be like, before it is run: how long it takes, who waits for whom, what each rank
// allocates and what it sends. Plain data.

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "parallel/planned/plan_view.h"
#include "plan/spec.h"

namespace echelon::foresight {

inline constexpr std::size_t most_by_link = 64;  // ranks whose traffic is told by link

struct RankPrediction {
  double compute = 0;                  // seconds of operations in a step
  double exchange = 0;                 // of sums over ranks, of the update and of copying
  std::map<int, double> waits = {};    // seconds, by the rank that it waits for; -1: for all of them
  double sent = 0;                     // bytes to other ranks
  std::map<int, double> sent_to = {};  // of these, by the rank that they go to, where ranks are few (most_by_link)
  RankBytes bytes = {};                // that it allocates

  double runs = 0;  // of each operation in a step, one after the other: micro-batches of the core with the most
  std::map<std::string, double> operations = {};  // seconds of each in one run; where PredictOptions asks for them

  double waiting() const {
    double sum = 0;
    for (const auto& [rank, seconds] : waits) sum += seconds;
    return sum;
  }
  void send(int to, double bytes_sent) { sent += bytes_sent, sent_to[to] += bytes_sent; }
  // A part of it to each other member of a group, as sums and gathers of owned parts do it.
  void send_to_others(std::span<const int> group, int self, double bytes_sent);
};

// Of the buckets in which gradients leave, the one that holds the step up longest.
struct LateBucket {
  int bucket = -1, buckets = 0;   // from 0; -1: all are hidden behind the computing
  double bytes = 0, seconds = 0;  // seconds of its sum that nothing hides
};

struct Prediction {
  PlanSpec plan = {};  // `data` is filled in
  int workers = 1;
  double seconds = 0;                      // of a step
  double samples = 0;                      // of a step
  std::vector<RankPrediction> ranks = {};  // of all; of the first replica where replicas are alike and many
  // Where a step's time goes on the rank that computes longest, in seconds: what is left of `seconds` is waiting.
  double compute = 0, exchange = 0;
  int busy = 1;           // cores of this machine that work at the same time
  double measured = 0;    // share of the computing time whose operations were measured here, not taken from a roofline
  double correction = 1;  // by which `seconds` was multiplied, from earlier runs of this kind (foresight/outcomes.h)
  // Operations and links by what they add to a step, the largest first: what to look at if the prediction is wrong.
  std::vector<std::pair<std::string, double>> parts = {};
  LateBucket late = {};
  double input = 0;  // seconds of a step in which samples are made and nothing hides it
  // What the profile calls the operations of `ranks`: (family, shapes), by their name.
  std::map<std::string, std::set<std::pair<std::string, std::string>>> profiled = {};

  double samples_per_second() const { return seconds > 0 ? samples / seconds : 0; }
  double waiting() const { return std::max(0.0, seconds - compute - exchange); }
  double sent() const {
    double sum = 0;
    for (const RankPrediction& r : ranks) sum += r.sent;
    return ranks.empty() ? 0 : sum * workers / static_cast<double>(ranks.size());
  }
  std::size_t most_bytes() const {
    std::size_t most = 0;
    for (const RankPrediction& r : ranks) most = std::max(most, r.bytes.all());
    return most;
  }
};

}  // namespace echelon::foresight
