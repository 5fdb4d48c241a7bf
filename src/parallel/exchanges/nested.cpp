// Groups that sum inside, and whose heads exchange outside (MXNet-MPI): a group's members all-reduce their
// contributions; the first of them takes the mean to the outer exchange as if it were a single worker, and hands what
// comes back to its group. Synchrony holds inside a group; between groups it is whatever the sync says.

#include <algorithm>

#include "collective/algorithms.h"
#include "collective/all_reduce.h"
#include "kernels/vector.h"
#include "parallel/axes.h"
#include "parallel/composition.h"
#include "parallel/exchanges/exchanges.h"
#include "parallel/server/relay.h"
#include "parallel/team/message_wait.h"

namespace echelon::exchanges {

namespace {

// A whole group as the outer exchange sees it: one worker.
struct GroupNumbers {
  std::span<float> mean, answer;
};

class GroupSide : public WorkerSide {
 public:
  explicit GroupSide(GroupNumbers numbers) : numbers_(numbers) {}
  void contribute(Range range, double share, std::span<float> out) override {
    kernels::scale(out.data(), numbers_.mean.data() + range.begin, static_cast<float>(share), out.size());
  }
  void apply(Range range, std::span<const float> answer) override {
    std::ranges::copy(answer, numbers_.answer.begin() + static_cast<std::ptrdiff_t>(range.begin));
  }

 private:
  GroupNumbers numbers_;
};

class GroupRule : public MergeRule {
 public:
  GroupRule(const MergeRule& inner, GroupNumbers numbers) : inner_(inner), numbers_(numbers) {}
  RuleTraits traits() const override { return inner_.traits(); }
  std::unique_ptr<WorkerSide> make_worker(const ReplicaView&) const override {
    return std::make_unique<GroupSide>(numbers_);
  }
  std::unique_ptr<SharedSide> make_shared(const Place& place) const override { return inner_.make_shared(place); }

 private:
  const MergeRule& inner_;
  GroupNumbers numbers_;
};

class Nested : public Exchange {
 public:
  Nested(int size, const ExchangeKind& outer, ExchangeParts parts)
      : parts_(std::move(parts)),
        group_(parts_.team->group().split(parts_.rank() / size, parts_.rank())),
        worker_(parts_.rule->make_worker(parts_.view())),
        sum_((parts_.floats() + 1) * sizeof(float)),
        answer_(parts_.floats() * sizeof(float)),
        rule_(*parts_.rule, {sum_.as<float>().first(parts_.floats()), answer_.as<float>()}),
        message_wait_(*parts_.team, *parts_.mailbox) {
    ExchangeParts outside = parts_;
    outside.rule = &rule_;
    for (Rank r = 0; r < parts_.workers(); r += size) outside.members.push_back(r);
    outer_ = outer.make(std::move(outside));
  }

  double exchange(const StepInfo& info) override {
    const bool gradient = parts_.rule->traits().quantity == RuleTraits::Quantity::gradient;
    const std::span<float> all = sum_.as<float>(), sum = all.first(parts_.floats());
    const double share = gradient ? info.share : 1;
    worker_->contribute({0, sum.size()}, share, sum);
    all.back() = static_cast<float>(share);
    if (group_.size() > 1) all_reduce(group_, all, Reduction::sum, {.algorithm = &find_algorithm("ring")});
    if (all.back() > 0) kernels::scale(sum.data(), sum.data(), 1 / all.back(), sum.size());
    if (group_.index() == 0) {
      StepInfo ours = info;
      if (gradient) ours.share = all.back();
      outer_->exchange(ours);
      for (int m = 1; m < group_.size(); ++m)
        parts_.mailbox->post(group_.rank_of(m), {.kind = answer, .tag = ServerRelay::relay_tag}, answer_.as<float>());
    } else {
      take_answer();
    }
    worker_->apply({0, sum.size()}, answer_.as<float>());
    return parts_.rule->traits().local_step ? 1 : 0;
  }

  void on_gradient() override { worker_->on_gradient(); }
  void leave() override { outer_->leave(); }
  void drain() override { outer_->drain(); }
  void read_model(std::span<float> out) override { outer_->read_model(out); }

  std::vector<Figure> figures() override { return outer_->figures(); }

  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all = outer_->state();
    add_states(all, "member ", worker_->state());
    return all;
  }

 private:
  void take_answer() {
    Message message;
    message_wait_.take(ServerRelay::relay_tag, message, "with the answer to its group",
                       [this] { return group_.rank_of(0); });
    const std::span<const float> values = message.floats();
    if (message.from != group_.rank_of(0) || values.size() != parts_.floats())
      fail("rank {} handed its group {} numbers", message.from, values.size());
    std::ranges::copy(values, answer_.as<float>().begin());
  }

  ExchangeParts parts_;
  Group group_;
  std::unique_ptr<WorkerSide> worker_;
  Buffer sum_;     // of the group's contributions; the last number: of their shares
  Buffer answer_;  // to the group
  GroupRule rule_;
  MessageWait message_wait_;
  std::unique_ptr<Exchange> outer_;
};

class NestedKind : public ExchangeKind {
 public:
  NestedKind(int group, std::unique_ptr<const ExchangeKind> outer) : group_(group), outer_(std::move(outer)) {}
  ExchangeTraits traits() const override {
    return {.in_lockstep = false,
            .plain_numbers = outer_->traits().plain_numbers,
            .sums_on_the_way = true,
            .by_clock = outer_->traits().by_clock};
  }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override {
    outer_->accepts(c, facts, problems);
    refuse(problems, c.work.common,
           "exchange nested has workers that step together, so each must do its own part: set sync.work=own");
  }
  std::string problem(int workers, bool has_codec) const override {
    return outer_->problem(workers, has_codec);  // servers live on any rank, not only on heads
  }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<Nested>(group_, *outer_, std::move(parts));
  }
  std::string messages_text() const override {
    return "2 g (g-1) in each group of g, and 2 (g-1) for the answer; its heads, outside, as n: " +
           outer_->messages_text();
  }
  std::string traffic_text() const override {
    return "in each group of g: 2 (g-1) 4F for the sum in a ring and (g-1) 4F for the answer; its heads, outside, as "
           "n: " +
           outer_->traffic_text();
  }
  Traffic traffic(const TrafficQuery& c) const override {
    TrafficQuery outside = c;
    Traffic inside;
    for (Rank r = 0; r < c.workers; r += group_) {
      outside.members.push_back(r);
      const double g = std::min(group_, c.workers - r), bytes = 4.0 * static_cast<double>(c.floats);
      inside = inside + Traffic{2 * g * (g - 1), 2 * (g - 1) * (bytes + 4)};
      inside = inside + (g - 1) * Traffic{2, Mailbox::header_bytes + bytes};
    }
    return inside + outer_->traffic(outside);
  }

 private:
  int group_;
  std::unique_ptr<const ExchangeKind> outer_;
};

std::unique_ptr<const ExchangeKind> make_nested(OptionReader& options) {
  const auto group = static_cast<int>(options.integer("group", 2, 1, 100'000));
  OptionReader outer = options.table("outer");
  refuse_moved_settings(outer);
  const ExchangePart part = server();
  if (outer.choice("name", part.name, {part.name}) != part.name)
    return std::make_unique<NestedKind>(group, part.make(outer));
  auto kind = part.make(outer);
  if (kind->traits().sums_on_the_way)
    outer.problem("fanout", "is for workers, and the groups' heads are few: leave out fanout and two_level here");
  if (kind->traits().sites)
    outer.problem("sites", "are of workers, and a group's members may be in several: leave it out here");
  if (kind->traits().no_own_gradient)
    outer.problem("factors",
                  "are of each worker's own samples, but a group's head has a sum of gradients: leave it out");
  outer.done();
  return std::make_unique<NestedKind>(group, std::move(kind));
}

}  // namespace

ExchangePart nested() {
  return {{"nested",
           "groups exchange inside, and their heads outside",
           {{"group", "2", "workers in a group"}, {"outer", "a server", "a table: the exchange between groups"}}},
          make_nested};
}

}  // namespace echelon::exchanges
