#include "run/health/replica_check.h"

#include <algorithm>

#include "base/crc32c.h"
#include "base/error.h"

namespace echelon {

namespace {

std::uint32_t hash_of_contribution(Engine& engine) {
  std::uint32_t crc = 0;
  for (const std::span<const float> part : engine.contributions()) crc = crc32c(std::as_bytes(part), crc);
  return crc;
}

// The rank whose shards rank `r` has when a step is computed a second time.
Rank stands_in_for(Rank r, int ranks) { return (r + ranks - 1) % ranks; }

}  // namespace

ReplicaCheck::ReplicaCheck(ReplicaCheckOptions options, Engine& engine, Team& team, std::unique_ptr<World> second_world,
                           std::unique_ptr<Team> second_team, std::unique_ptr<Engine> second,
                           std::unique_ptr<data::Loader> loader)
    : options_(std::move(options)),
      engine_(engine),
      team_(team),
      second_world_(std::move(second_world)),
      second_team_(std::move(second_team)),
      second_(std::move(second)),
      loader_(std::move(loader)) {
  if (options_.doubt.empty()) return;
  doubted_ = Json::parse(options_.doubt);
  doubted_step_ = doubted_.at("step").get<std::int64_t>();
}

ReplicaCheck::~ReplicaCheck() = default;

std::uint64_t ReplicaCheck::hash(Engine& engine) const {
  engine.gather();
  std::uint32_t state = 0;
  for (const StateSpan& s : engine.state()) state = crc32c(s.bytes, state);
  const std::uint32_t weights = crc32c(std::as_bytes(engine.model()));
  engine.end_gather();
  return std::uint64_t{weights} << 32 | state;
}

void ReplicaCheck::copy() {
  engine_.gather();
  std::ranges::copy(engine_.model(), second_->model().begin());
  const std::vector<StateSpan> from = engine_.state(), to = second_->state();
  for (std::size_t i = 0; i < from.size(); ++i) std::ranges::copy(from[i].bytes, to[i].bytes.begin());
  engine_.end_gather();
  copied_ = true;
}

void ReplicaCheck::note_step(std::int64_t step) {
  contributions_.push_back(hash_of_contribution(engine_));
  if (flips(options_.flips, team_.world().rank(), step, BitFlip::weights)) flip_a_bit(engine_.model().front());
}

bool ReplicaCheck::agree(std::int64_t step, const StepRange& last) {
  Evidence mine;
  if (copied_ && last.to == step) {
    StepRange again = last;
    again.loader = loader_.get();
    again.asks_to_stop = [] { return false; };
    again.on_progress = [](const StepProgress&) {};
    again.on_span = {};
    second_->run(again);
    mine.again = hash(*second_);
    mine.recomputed = hash_of_contribution(*second_);
    mine.has_again = 1;
  }
  copied_ = false;
  mine.weights = hash(engine_);
  evidence_ = team_.all_gather_struct(mine);
  const bool same = std::ranges::all_of(evidence_, [&](const Evidence& e) {
    return e.weights == evidence_[0].weights && (!e.has_again || e.again == e.weights);
  });
  if (!same || has_doubt_of(step)) collect(step);
  contributions_.clear();
  return same;
}

void ReplicaCheck::collect(std::int64_t step) {
  const auto ranks = static_cast<std::size_t>(team_.world().size());
  const std::vector<std::size_t> counts(ranks, contributions_.size());
  all_.assign(ranks * contributions_.size(), 0);
  std::ranges::copy(contributions_, all_.begin() + team_.world().rank() * std::ssize(contributions_));
  team_.all_gather_structs(std::span(all_), counts);
  Json json{{"step", step}, {"steps", contributions_.size()}, {"contributions", all_}, {"ranks", Json::array()}};
  for (const Evidence& e : evidence_) json["ranks"].push_back({e.weights, e.again, e.recomputed, e.has_again});
  new_doubt_ = json.dump();
}

Rank ReplicaCheck::culprit() {
  const Json was = std::exchange(doubted_, {});
  doubted_step_ = -1;
  return find_culprit(was, Json::parse(new_doubt_));
}

std::string ReplicaCheck::who_differs() const {
  const auto holders = [&](const Evidence& e) { return std::ranges::count(evidence_, e.weights, &Evidence::weights); };
  std::string others;
  for (std::size_t r = 0; r < evidence_.size(); ++r)
    if (2 * holders(evidence_[r]) < std::ssize(evidence_))
      others += fmt::format("{}rank {}", others.empty() ? "" : ", ", r);
  if (!others.empty()) return others + " holds other weights than the others";
  if (std::ranges::all_of(evidence_, [&](const Evidence& e) { return e.weights == evidence_[0].weights; }))
    return "the last step, computed twice, came to two results";
  return "the ranks hold different weights";
}

int find_culprit(const Json& was, const Json& truth) {
  const auto ranks = was.at("ranks").size();
  const auto steps = was.at("steps").get<std::size_t>();
  if (truth.at("ranks").size() != ranks || truth.at("steps").get<std::size_t>() != steps) return -1;
  const Json &before = was.at("contributions"), &right = truth.at("contributions");
  for (std::size_t step = 0; step < steps; ++step)
    for (std::size_t r = 0; r < ranks; ++r)
      if (before[r * steps + step] != right[r * steps + step]) return static_cast<int>(r);
  for (std::size_t r = 0; r < ranks; ++r)
    if (was.at("ranks")[r][0] != truth.at("ranks")[r][0]) return static_cast<int>(r);  // its own weights
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto whose = static_cast<std::size_t>(stands_in_for(static_cast<int>(r), static_cast<int>(ranks)));
    if (was.at("ranks")[r][3] == 0 || steps == 0) continue;
    if (was.at("ranks")[r][2] != right[whose * steps + steps - 1]) return static_cast<int>(r);
  }
  for (std::size_t r = 0; r < ranks; ++r)
    if (was.at("ranks")[r][1] != truth.at("ranks")[r][1]) return static_cast<int>(r);
  return -1;
}

}  // namespace echelon
