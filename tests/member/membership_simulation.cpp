#include "tests/member/membership_simulation.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <set>

#include "base/error.h"
#include "member/agent.h"
#include "member/memory_store.h"

namespace echelon::testing {

namespace {

constexpr double tick_seconds = 0.1, step_seconds = 0.07, lost_after = 1.5, storm_seconds = 25, calm_seconds = 45;

enum class Reach { both, none, answers_lost };  // of the store, from a node

// The store as a node sees it through its network.
class DistantStore final : public Store {
 public:
  // `meanwhile`: called between what a node reads and what it writes.
  DistantStore(Store& store, const Reach& reach, std::function<bool()> drops, std::function<void()> meanwhile)
      : store_(store), reach_(reach), drops_(std::move(drops)), meanwhile_(std::move(meanwhile)) {}
  Entry read(const std::string& key) override {
    return through([&] { return store_.read(key); });
  }
  bool write_if(const std::string& key, std::uint64_t revision, const std::string& text) override {
    return through([&] { return store_.write_if(key, revision, text); });
  }
  Lease grant(double seconds, const std::string& key, const std::string& text) override {
    return through([&] { return store_.grant(seconds, key, text); });
  }
  bool renew(Lease lease) override {
    return through([&] { return store_.renew(lease); });
  }
  void revoke(Lease lease) override {
    through([&] { return store_.revoke(lease), 0; });
  }
  std::vector<std::string> list(const std::string& prefix) override {
    meanwhile_();
    return through([&] { return store_.list(prefix); });
  }

 private:
  template <typename Call>
  auto through(Call call) -> decltype(call()) {
    if (reach_ == Reach::none || drops_()) throw StoreError("no way to the store");
    auto answer = call();
    if (reach_ == Reach::answers_lost || drops_()) throw StoreError("no answer from the store");
    return answer;
  }
  Store& store_;
  const Reach& reach_;
  std::function<bool()> drops_;
  std::function<void()> meanwhile_;
};

struct SimulatedNode {
  std::string name;
  bool alive = false, frozen = false, launcher_frozen = false;
  double until = 0;       // of the fault that it has
  double returns = 0;     // when a dead one is started again
  double clock_rate = 1;  // of its clock
  Reach reach = Reach::both;
  std::unique_ptr<Store> store;
  std::unique_ptr<Agent> agent;
  NodeState state;
  Membership view;            // that its ranks were started with
  double cut_off_since = -1;  // when its ranks last had all their peers
  double idle_since = 0, asked_to_leave = -1;
  bool left = false;  // as it was asked to
  double next_tick = 0;
  std::set<std::int64_t> started;
};

class Simulated {
 public:
  Simulated(std::uint64_t seed, const MemberBugs& bugs, int nodes, int steps)
      : random_(seed),
        bugs_(bugs),
        steps_(steps),
        store_([this] { return now_; }),
        nodes_(static_cast<std::size_t>(nodes)) {
    least_ = 1 + static_cast<int>(below(3));
    most_ = std::max(least_, 1 + static_cast<int>(below(static_cast<std::uint64_t>(nodes))));
    cut_.assign(nodes_.size(), std::vector<double>(nodes_.size(), 0));
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].name = "n" + std::to_string(i);
      begin(i);
    }
  }

  MembershipReport run() {
    const double end = storm_seconds + calm_seconds + 60;
    bool killed_in_calm = false;
    while (now_ < end && report_.problem.empty() && !all_ended()) {
      now_ += 0.01;
      if (now_ > 4 && now_ < storm_seconds) make_faults();
      heal();
      for (std::size_t i = 0; i < nodes_.size(); ++i) tick(i);
      if (now_ >= next_step_) do_steps();
      detect_losses();
      if (!killed_in_calm && now_ > storm_seconds + 30) killed_in_calm = true, kill_in_calm();
      check_calm();
    }
    if (report_.problem.empty() && !all_ended()) broken("the job has not ended long after all faults were healed");
    report_.steps = newest_;
    return std::move(report_);
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  double unit() { return static_cast<double>(random_() >> 11) / 9007199254740992.0; }
  bool calm() const { return now_ > storm_seconds + 8; }

  void note(const std::string& text) { report_.log += fmt::format("{:.2f} {}\n", now_, text); }
  void broken(const std::string& text) {
    if (report_.problem.empty()) report_.problem = fmt::format("{:.2f} s: {}", now_, text);
  }

  void begin(std::size_t i) {
    SimulatedNode& n = nodes_[i];
    const std::string name = n.name;
    n = {};
    n.name = name;
    n.alive = true;
    n.clock_rate = 0.9 + 0.2 * unit();
    n.next_tick = now_ + unit() * 0.5;
    n.idle_since = now_;
    n.store = std::make_unique<DistantStore>(
        store_, n.reach, [this] { return now_ < storm_seconds && unit() < 0.02; },
        [this, i] {
          if (inside_ || unit() > 0.3) return;
          inside_ = true;
          if (const std::size_t other = below(nodes_.size()); other != i) tick(other, true);
          inside_ = false;
        });
    AgentOptions options{.prefix = "/job/", .name = name, .least = least_, .most = most_};
    options.fresh = [this] {
      std::string text;
      for (int k = 0; k < 4; ++k) text += fmt::format("{:016x}", random_());
      return text;
    };
    options.bugs = bugs_;
    n.agent = std::make_unique<Agent>(*n.store, options);
    n.state.offer = {
        .host_id = name, .address = "10.0.0.1", .ports = {static_cast<std::uint16_t>(1000 + i)}, .seed = 1};
    note(name + " begins");
  }

  void end_life(SimulatedNode& n, double returns) {
    n.alive = false;
    n.state.running = false;
    n.returns = returns;
  }

  void make_faults() {
    if (unit() > 0.012) return;
    SimulatedNode& n = nodes_[below(nodes_.size())];
    if (!n.alive || n.left) return;
    ++report_.faults;
    const double until = now_ + 0.2 + unit() * 8;
    switch (below(8)) {
      case 0: note(n.name + " is killed"); return end_life(n, now_ + 0.5 + unit() * 6);
      case 1:
        note(n.name + " stands still");
        n.frozen = true, n.until = until;
        return;
      case 2:
        note(n.name + "'s launcher stands still, its ranks do not");
        n.launcher_frozen = true, n.until = until;
        return;
      case 3:
        note(n.name + " is cut off from the store");
        n.reach = Reach::none, n.until = until;
        return;
      case 4:
        note(n.name + " hears nothing from the store");
        n.reach = Reach::answers_lost, n.until = until;
        return;
      case 5: {  // some nodes from the others, and perhaps from the store
        note("the network falls into two");
        for (std::size_t a = 0; a < nodes_.size(); ++a)
          for (std::size_t b = 0; b < nodes_.size(); ++b)
            if (a % 2 != b % 2) cut_[a][b] = until;
        for (std::size_t a = 0; a < nodes_.size(); a += 2) nodes_[a].reach = Reach::none, nodes_[a].until = until;
        return;
      }
      case 6: {  // one way
        const std::size_t a = below(nodes_.size()), b = below(nodes_.size());
        note(fmt::format("{} hears nothing from {}", nodes_[a].name, nodes_[b].name));
        cut_[a][b] = until;
        return;
      }
      default:
        if (std::ranges::count_if(nodes_, [](const SimulatedNode& o) { return o.asked_to_leave >= 0; }) > 1) return;
        note(n.name + " is asked to leave");
        n.asked_to_leave = now_;
        n.state.leaving = true;
    }
  }

  void heal() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      SimulatedNode& n = nodes_[i];
      if (!n.alive && !n.left && n.returns > 0 && now_ >= n.returns) begin(i);
      if (n.until > 0 && (now_ >= n.until || now_ > storm_seconds)) {
        n.frozen = n.launcher_frozen = false, n.reach = Reach::both, n.until = 0;
        note(n.name + " is well again");
      }
    }
    if (now_ > storm_seconds)
      for (auto& row : cut_) std::ranges::fill(row, 0.0);
  }

  void tick(std::size_t i, bool early = false) {
    SimulatedNode& n = nodes_[i];
    if (!n.alive || n.frozen || n.launcher_frozen || (now_ < n.next_tick && !early)) return;
    n.next_tick = now_ + tick_seconds;
    NodeOrder order = n.agent->tick(now_ * n.clock_rate, n.state);
    switch (order.act) {
      case NodeOrder::wait: return;
      case NodeOrder::start: return start(n, std::move(order.view));
      case NodeOrder::stop_softly:
        for (SimulatedNode& other : nodes_)  // the ranks agree on it with their next step
          if (together(n, other)) soft_.insert(other.name);
        return;
      case NodeOrder::stop_now: note(n.name + " stops at once: " + order.why); return stop(n);
      case NodeOrder::end:
        note(n.name + " ends");
        if (n.asked_to_leave < 0 && !finished_) broken(n.name + " ended though nobody asked it to");
        n.left = true;
        n.agent->resign();
        return end_life(n, 0);
    }
  }

  void start(SimulatedNode& n, Membership view) {
    if (!n.started.insert(view.generation).second) broken(n.name + " starts again in a generation that it was in");
    const int size = view.running();
    if (size < least_ || size > most_)
      broken(fmt::format("generation {} has {} nodes, not {} to {}", view.generation, size, least_, most_));
    if (report_.generations == 0 && size < std::min<int>(most_, static_cast<int>(nodes_.size())))
      broken("the first generation did not wait for the others");
    if (const auto known = sessions_.find(view.generation); known != sessions_.end() && known->second != view.session)
      broken(fmt::format("two generations have the number {}", view.generation));
    for (const auto& [generation, session] : sessions_)
      if (generation != view.generation && session == view.session) broken("two generations have one session");
    sessions_[view.generation] = view.session;
    report_.generations = std::max(report_.generations, view.generation);
    note(fmt::format("{} starts generation {} with {} nodes", n.name, view.generation, size));
    n.state.running = true;
    n.state.generation = view.generation;
    n.view = std::move(view);
    n.cut_off_since = now_;
    synced_.erase(n.name);
  }

  void stop(SimulatedNode& n) {
    n.state.running = false;
    n.idle_since = now_;
    soft_.erase(n.name);
    synced_.erase(n.name);
  }

  bool together(const SimulatedNode& a, const SimulatedNode& b) const {
    return b.alive && b.state.running && b.view.session == a.view.session && b.view.generation == a.view.generation;
  }
  bool fenced(const SimulatedNode& n) const { return now_ * n.clock_rate > n.agent->valid_until(); }

  // The members of a node's generation, if their ranks can do a step together now.
  std::vector<SimulatedNode*> whole_generation(SimulatedNode& n) {
    std::vector<SimulatedNode*> all;
    for (const MemberNode& m : n.view.nodes) {
      if (!n.view.has(m)) continue;
      const auto it = std::ranges::find_if(
          nodes_, [&](const SimulatedNode& o) { return o.alive && o.agent->id() == m.id && together(n, o); });
      if (it == nodes_.end() || it->frozen || fenced(*it)) return {};
      all.push_back(&*it);
    }
    for (const SimulatedNode* a : all)
      for (const SimulatedNode* b : all)
        if (cut_[static_cast<std::size_t>(a - nodes_.data())][static_cast<std::size_t>(b - nodes_.data())] > now_)
          return {};
    return all;
  }

  void do_steps() {
    next_step_ = now_ + step_seconds * (0.5 + unit());
    std::set<std::string> done;  // sessions
    for (SimulatedNode& n : nodes_) {
      if (!n.alive || !n.state.running || !done.insert(n.view.session).second) continue;
      const std::vector<SimulatedNode*> all = whole_generation(n);
      if (all.empty()) {
        done.erase(n.view.session);
        continue;
      }
      for (SimulatedNode* m : all) m->cut_off_since = now_;
      const bool synced = std::ranges::all_of(all, [&](SimulatedNode* m) { return synced_.contains(m->name); });
      if (!synced) {  // all begin with the state of the first
        const std::int64_t begins = all.front()->state.step;
        for (SimulatedNode* m : all) {
          if (m->state.step > begins)
            broken(fmt::format("generation {} begins at step {}, and {} holds step {}", n.view.generation, begins,
                               m->name, m->state.step));
          synced_.insert(m->name);
        }
        for (SimulatedNode* m : all) m->state.step = std::max<std::int64_t>(begins, 0);
        continue;
      }
      if (std::ranges::any_of(all, [&](SimulatedNode* m) { return soft_.contains(m->name); })) {
        for (SimulatedNode* m : all) stop(*m);
        continue;
      }
      commit(n.view, all);
    }
  }

  void commit(const Membership& view, const std::vector<SimulatedNode*>& all) {
    const std::int64_t step = all.front()->state.step + 1;
    if (view.generation < committed_generation_)
      broken(fmt::format("generation {} commits step {} after generation {} has committed", view.generation, step,
                         committed_generation_));
    committed_generation_ = view.generation;
    last_commit_ = now_;
    newest_ = std::max(newest_, step);
    for (SimulatedNode* m : all) m->state.step = step;
    if (newest_ < steps_ || now_ < storm_seconds + calm_seconds) return;
    finished_ = true;
    const std::vector<SimulatedNode*> ended = all;
    for (SimulatedNode* m : ended) stop(*m), m->state.outcome = "";
  }

  // A rank that has lost one of its peers ends; so do those of the same node.
  void detect_losses() {
    for (SimulatedNode& n : nodes_) {
      if (!n.alive || n.frozen || !n.state.running) continue;
      bool closed = false;  // a peer's process is gone, and its connections with it
      for (const MemberNode& m : n.view.nodes)
        closed |= n.view.has(m) && m.id != n.agent->id() && now_ - n.cut_off_since > 0.2 &&
                  std::ranges::none_of(nodes_, [&](const SimulatedNode& o) {
                    return o.alive && o.agent->id() == m.id && together(n, o);
                  });
      const bool past_fence = fenced(n);
      if (!past_fence && !closed && (now_ - n.cut_off_since < lost_after || !whole_generation(n).empty())) continue;
      note(n.name + (past_fence ? ": its ranks stop, for its launcher is silent" : " has lost a peer"));
      stop(n);
    }
  }

  bool all_ended() const {
    return finished_ && std::ranges::none_of(nodes_, [](const SimulatedNode& n) { return n.alive; });
  }

  void kill_in_calm() {
    const auto running = std::ranges::count_if(nodes_, [](const SimulatedNode& n) { return n.alive; });
    if (running <= least_) return;
    for (SimulatedNode& n : nodes_)
      if (n.alive && n.state.running && whole_generation(n).size() > 1) {
        note(n.name + " is killed in the calm");
        killed_ = now_;
        return end_life(n, now_ + 4);
      }
  }

  void check_calm() {
    if (!calm() || finished_ || !report_.problem.empty()) return;
    const auto alive = std::ranges::count_if(nodes_, [](const SimulatedNode& n) { return n.alive; });
    const double longest = killed_ > 0 && now_ - killed_ < 12 ? 3.0 : 8.0;
    if (alive >= least_ && now_ - std::max(last_commit_, storm_seconds) > longest)
      broken("no step is done though nothing is in the way");
    if (generations_before_ == 0) generations_before_ = report_.generations;
    if (report_.generations > generations_before_ + 12) broken("generations follow each other though nothing happens");
    const auto in = std::ranges::count_if(nodes_, [](const SimulatedNode& n) { return n.alive && n.state.running; });
    if (in == 0 || in >= most_) room_since_ = now_;
    for (const SimulatedNode& n : nodes_) {
      if (n.asked_to_leave >= 0 && n.alive && now_ - std::max(n.asked_to_leave, storm_seconds) > 15)
        broken(n.name + " was asked to leave, and is still there");
      if (n.alive && !n.state.running && now_ - std::max({n.idle_since, room_since_, storm_seconds}) > 10)
        broken(n.name + " waits though there is room");
    }
  }

  std::mt19937_64 random_;
  const MemberBugs bugs_;
  const int steps_;
  int least_ = 1, most_ = 1;
  double now_ = 0, next_step_ = 0, last_commit_ = 0, killed_ = -1, room_since_ = 0;
  MemoryStore store_;
  std::vector<SimulatedNode> nodes_;
  std::vector<std::vector<double>> cut_;  // until when the first hears nothing from the second
  std::set<std::string> soft_, synced_;   // nodes whose ranks are to stop; whose ranks have the generation's state
  std::map<std::int64_t, std::string> sessions_;
  std::int64_t committed_generation_ = 0, newest_ = 0, generations_before_ = 0;
  bool finished_ = false, inside_ = false;
  MembershipReport report_;
};

}  // namespace

MembershipReport simulate_membership(std::uint64_t seed, const MemberBugs& bugs, int nodes, int steps) {
  return Simulated(seed, bugs, nodes, steps).run();
}

}  // namespace echelon::testing
