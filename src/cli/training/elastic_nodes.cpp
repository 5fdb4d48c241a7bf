#include "cli/training/elastic_nodes.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "cli/training/switch.h"
#include "cli/training/watchman.h"
#include "member/agent.h"
#include "member/etcd_store.h"
#include "member/launcher_store.h"
#include "recipe/differences.h"
#include "recipe/toml.h"
#include "run/training/initial_weights.h"
#include "run/training/state_keeper.h"
#include "track/control.h"
#include "world/os/host.h"
#include "world/os/signals.h"
#include "world/os/tasks.h"

namespace echelon::cli {

namespace {

constexpr double between_ticks = 0.05, grace_of_ranks = 0.5, seconds_to_say_goodbye = 5;

std::string fresh_digits() { return tcp::to_hex({tcp::make_nonce()}); }

// One node of the job, from its first look at the store to its end.
class ElasticNode {
 public:
  ElasticNode(const TrainSettings& s, const LaunchOptions& launch, std::shared_ptr<const ReadyJob> ready,
              const PrepareJob& prepare)
      : settings_(s),
        options_(checked_options(s, *ready)),
        launch_(launch),
        stages_(stages_of(s, std::move(ready), prepare)),
        clock_(make_real_clock()),
        began_here_(s.run.empty() || !make_real_disk()->exists(RunFolder{s.run}.recipe())),
        holder_(options_.etcd ? nullptr : hold_launcher_store(options_)),
        store_(open_job_store(options_)),
        agent_(*store_, {.prefix = job_prefix(options_),
                         .name = host_name(),
                         .least = options_.min_nodes,
                         .most = options_.max_nodes,
                         .most_at = [this](std::int64_t step) { return machines_at(step); },
                         .transient = options_.transient,
                         .lease_seconds = 5,
                         .last_call_seconds = options_.last_call_seconds,
                         .fresh = fresh_digits}) {
    settings_.world.world = "tcp";
    settings_.kept = &kept_;
    launch_.grace_seconds = grace_of_ranks;
    launch_.on_death = [this](int rank, int signal) {
      losses_.push_back({rank, signal, watchman_.last_words(kept_.folder(), rank)});
    };
    launch_.on_signal = [this](int) { return state_.leaving = view_.running() > 1; };
    launch_.go_on = [this] { return look(); };
  }

  void run() {
    publish();
    for (;;) {
      TcpNode node(options_, launch_);
      state_.offer = node.offer();
      state_.step = kept_.has_state() ? kept_.step() : -1;
      const NodeOrder order = wait_for_generation();
      if (order.act == NodeOrder::end) return finish(order);
      train(node, order.view);
    }
  }

 private:
  static TcpOptions checked_options(const TrainSettings& s, const ReadyJob& ready) {
    TcpOptions o = tcp_options(s.world);
    if (!s.world.world.empty() && s.world.world != "tcp")
      bad_input("--nnodes MIN:MAX is for --world tcp, not {}", s.world.world);
    expect_comparable(s, ready, 0);
    if (s.trace) bad_input("--trace is of one generation of workers: leave it out, or say --nnodes N");
    if (o.per_node > KeptState::most_parts)
      bad_input("machines that come and go have at most {} workers each, not {}", KeptState::most_parts, o.per_node);
    if (ready.job.plan.splits_model()) o.min_nodes = o.max_nodes;  // a plan is for its number of workers
    return o;
  }

  // What is trained after so many of the changes.
  struct Stage {
    std::string system, plan;
    std::vector<std::string> overrides;
    std::shared_ptr<const ReadyJob> ready;
  };

  static std::vector<Stage> stages_of(const TrainSettings& given, std::shared_ptr<const ReadyJob> ready,
                                      const PrepareJob& prepare) {
    TrainSettings s = given;
    std::vector<Stage> stages{{s.system, s.plan, s.overrides, std::move(ready)}};
    for (const JournalLine& line : s.replayed) {
      if (line.request.servers == "quickest")
        bad_input("--stages {}: what is the quickest only one launcher can tell; leave out --nnodes", s.stages);
      std::shared_ptr<const ReadyJob> job = stages.back().ready;
      if (line.request.action == "switch") {
        if (!line.request.plan.empty())
          bad_input("after step {}, plan {}: a plan is for its number of workers, and machines come and go", line.step,
                    line.request.plan);
        std::string words;
        s = switched(s, line.request, words);
        job = prepare(s);
        if (floats_of(*job->job.model) != floats_of(*stages.front().ready->job.model))
          bad_input("after step {}, {} has other weights than the network that is being trained", line.step,
                    in_words(line.request));
      }
      stages.push_back({s.system, s.plan, s.overrides, std::move(job)});
    }
    return stages;
  }

  int changes_before(std::int64_t step) const {
    return static_cast<int>(
        std::ranges::count_if(settings_.replayed, [&](const JournalLine& l) { return l.step <= step; }));
  }

  // A stage that wants so many workers has as many machines as they take, if there are so many.
  int machines_at(std::int64_t step) const {
    int machines = options_.max_nodes;
    for (const JournalLine& line : settings_.replayed)
      if (line.step <= step && line.request.action == "resize")
        machines = (static_cast<int>(line.request.value) + options_.per_node - 1) / options_.per_node;
    return machines;
  }

  void say(const std::string& text) const {
    if (!settings_.quiet) fmt::print(stderr, "{}\n", text);
  }

  // For `echelon join`. Whoever comes first publishes.
  void publish() {
    const std::string key = job_prefix(options_) + "recipe";
    const std::string toml = resolved_toml(stages_.front().ready->prepared.recipe);
    Json changes = Json::array();
    for (const JournalLine& line : settings_.replayed) {
      changes.push_back(echelon::to_json(line.request));
      changes.back()["step"] = line.step;
    }
    const double deadline = clock_->seconds() + options_.join_seconds;
    for (;;) try {
        const Store::Entry before = store_->read(key);
        const Store::Entry members = store_->read(job_prefix(options_) + "members");
        if (before.revision > 0 && members.revision > 0 && !read_membership(members.text).over) {
          const Options theirs = parse_toml(read_published(*store_, options_).toml, "the job's recipe");
          if (Json::parse(before.text).value("changes", Json()) != changes)
            bad_input("the job '{}' at {} was begun with other --stages: say the same here, or `echelon join`",
                      options_.job_id, options_.endpoint);
          if (read_published(*store_, options_).check_replicas != settings_.check_replicas)
            bad_input("the job '{}' at {} was begun with --check-replicas {}: say the same here, or `echelon join`",
                      options_.job_id, options_.endpoint, read_published(*store_, options_).check_replicas);
          if (!differences(theirs, parse_toml(toml, settings_.recipe)).empty())
            bad_input("the job '{}' at {} trains another recipe than {}; `echelon join` takes the job's own",
                      options_.job_id, options_.endpoint, settings_.recipe);
          return;
        }
        const std::string name = std::filesystem::path(settings_.recipe).stem().string();
        store_->write_if(key, before.revision,
                         Json{{"name", name},
                              {"toml", toml},
                              {"plan", settings_.plan},
                              {"least", options_.min_nodes},
                              {"most", options_.max_nodes},
                              {"check_replicas", settings_.check_replicas},
                              {"changes", changes}}
                             .dump());
        return;
      } catch (const StoreError& problem) {
        if (clock_->seconds() > deadline) fail("{}", problem.what());
        sleep_really(between_ticks);
      }
  }

  NodeOrder wait_for_generation() {
    const StopSignals signals;
    const double began = clock_->seconds();
    double notice = began + 3;
    for (;;) {
      if (signals.flag()) state_.leaving = true;
      const NodeOrder order = agent_.tick(clock_->seconds(), state_);
      if (order.act == NodeOrder::start || order.act == NodeOrder::end) return order;
      const double now = clock_->seconds();
      if (state_.leaving && now - began > seconds_to_say_goodbye) return {.act = NodeOrder::end};  // nobody answers
      if (state_.outcome && now - began > seconds_to_say_goodbye)
        return {.act = NodeOrder::end, .why = *state_.outcome};
      const bool spare = order.view.running() > 0;  // others train; it waits until one of them goes
      if (now - began > options_.join_seconds && !spare)
        fail("waited {:g} s at {} for {} machines{}", options_.join_seconds, options_.endpoint, options_.min_nodes,
             agent_.trouble().empty() ? fmt::format("; {} came", order.view.waiting()) : ": " + agent_.trouble());
      if (now >= notice) {
        say(!agent_.trouble().empty() ? "waiting: " + agent_.trouble()
            : spare                   ? "waiting: the job has all the machines that it takes"
                    : fmt::format("waiting at {}: {} of {} machines are here", options_.endpoint, order.view.waiting(),
                                  options_.min_nodes));
        notice = now + 2 * (now - began);
      }
      sleep_really(between_ticks);
    }
  }

  // Some ten times a second while the ranks run; false: they are to be killed.
  bool look() {
    watchman_.look(kept_.folder());
    const NodeOrder order = agent_.tick(clock_->seconds(), state_);
    kept_.set_valid_until(agent_.valid_until());
    if (order.act == NodeOrder::stop_softly) kept_.want_change(true);
    if (order.act == NodeOrder::stop_now) stopped_ = order.why;
    return !stopped_ && losses_.empty();
  }

  void train(TcpNode& node, const Membership& view) {
    const tcp::JobTable table = table_for(view, agent_.id());
    const auto ranks = static_cast<int>(table.peers.size());
    TrainSettings& s = settings_;
    s.change = change_in_words(view, ranks);
    view_ = view;
    s.generation = view.generation;
    s.keeping = {.first = table.first_rank, .count = options_.per_node, .other_nodes = view.running() > 1};
    const MemberNode& front = view.nodes.front();
    s.goes_on = front.step >= 0;
    const int changes = changes_before(std::max<std::int64_t>(0, front.step));
    const Stage& stage = stages_[static_cast<std::size_t>(changes)];
    const auto kept_by = static_cast<std::size_t>(std::clamp(front.changes, 0, static_cast<int>(stages_.size()) - 1));
    const TrainingJob& job = stage.ready->job;
    s.system = stage.system, s.plan = stage.plan, s.overrides = stage.overrides;
    s.weights_only = s.goes_on && !keeps_layout(stages_[kept_by].ready->job, front.workers, job, ranks);
    kept_.begin(StateKeeper::parts_of(keeps_each_step(job, ranks), s.keeping, job.shards));
    const std::uint64_t version = kept_.version();
    const std::int64_t before = kept_.furthest();
    kept_.set_valid_until(agent_.valid_until());
    state_.running = true;
    state_.generation = view.generation;
    stopped_.reset();
    kept_.take_asked_workers(), kept_.take_wish();  // of a generation that was lost while it handed over
    losses_.clear();
    watchman_.begin_generation();
    try {
      node.run(table, [&](World& world) { train_rank(world, s, stage.ready->prepared, job); });
      if (kept_.take_asked_workers() == 0)
        state_.outcome = "";
      else
        note_doubt(table);
      if (kept_.furthest() > before) doubts_ = 0;
    } catch (const BadInput& problem) {
      state_.outcome = problem.what();
      refused_ = true;
    } catch (const RankFailed& problem) {
      const bool here = problem.rank() >= table.first_rank && problem.rank() < table.first_rank + options_.per_node;
      if (here && losses_.empty() && !stopped_ && !kept_.outdated()) state_.outcome = problem.what();
      if (losses_.empty()) say(stopped_ ? "this machine's workers were stopped: " + *stopped_ : problem.what());
    }
    state_.running = false;
    if (kept_.version() != version) state_.workers = ranks, state_.changes = changes;
    if (!losses_.empty()) say(in_words(losses_));
    if (const std::string folder = kept_.folder(); !folder.empty()) s.run = folder, s.resume = Resume::automatic;
    if (s.resume == Resume::no && !s.run.empty() && began_here_) s.resume = Resume::automatic;
  }

  // Ranks that check each other did not agree, or know who was wrong: whose machine is that leaves the job.
  void note_doubt(const tcp::JobTable& table) {
    const auto doubt = take_doubt(kept_.take_wish(), settings_, doubts_);
    if (!doubt) return;
    say(doubt->because);
    const int here = doubt->left_out - table.first_rank;
    if (doubt->left_out < 0 || here < 0 || here >= options_.per_node) return;
    if (view_.running() == 1) fail("{}, and there is no other machine", doubt->because);
    state_.leaving = true;
  }

  // "generation 3: host-1a2b has left, host-3c4d has joined; 2 machines with 4 workers go on from step 120"
  std::string change_in_words(const Membership& view, int ranks) const {
    std::string text;
    for (const MemberNode& n : view_.nodes)
      if (view_.has(n) && (!view.find(n.id) || !view.has(*view.find(n.id)))) text += n.id + " is gone, ";
    for (const MemberNode& n : view.nodes)
      if (view.has(n) && view_.generation > 0 && !view_.find(n.id)) text += n.id + " has joined, ";
    return fmt::format("generation {}: {}{} machine{} with {} go on from step {}", view.generation, text,
                       view.running(), view.running() == 1 ? "" : "s", workers_in_words(ranks),
                       std::max<std::int64_t>(0, view.nodes.front().step));
  }

  void finish(const NodeOrder& order) {
    agent_.resign();
    const double until = clock_->seconds() + seconds_to_say_goodbye;
    const auto others = [&] {
      try {
        return !store_->list(job_prefix(options_) + "node/").empty();
      } catch (const Error&) {
        return false;
      }
    };
    // Whoever holds the store leaves last, if the others are quick.
    while (holder_ && clock_->seconds() < until && others()) sleep_really(between_ticks);
    if (state_.leaving && !order.view.over) say("this machine has left the job");
    if (refused_) throw BadInput(order.why);
    if (!order.why.empty()) throw Failure(order.why);
  }

  TrainSettings settings_;
  const TcpOptions options_;
  LaunchOptions launch_;
  const std::vector<Stage> stages_;  // by the number of changes that were made
  const std::unique_ptr<Clock> clock_;
  const bool began_here_;
  const std::unique_ptr<ServiceProcess> holder_;  // of the store, if that is here
  const std::unique_ptr<Store> store_;
  Agent agent_;
  KeptState kept_;
  NodeState state_;
  Membership view_;  // of the generation that was trained last
  std::vector<WorkerLoss> losses_;
  Watchman watchman_{settings_.world.stopped_after, [this](const std::string& text) { say(text); }};
  std::optional<std::string> stopped_;  // why the launcher has killed its ranks
  bool refused_ = false;
  int doubts_ = 0;  // in a row, about steps on which the ranks did not agree
};

}  // namespace

bool nodes_come_and_go(const TrainSettings& s) {
  const bool range = s.world.nodes.find(':') != std::string::npos;
  return range || (s.elastic != Elastic::no && s.world.nodes != "1");
}

std::unique_ptr<Store> open_job_store(const TcpOptions& options) {
  return options.etcd ? make_etcd_store(options.endpoint) : make_launcher_store(options);
}

std::string job_prefix(const TcpOptions& options) { return "/echelon/" + options.job_id + "/"; }

PublishedRecipe read_published(Store& store, const TcpOptions& options) {
  const Store::Entry entry = store.read(job_prefix(options) + "recipe");
  if (entry.revision == 0) bad_input("no job '{}' at {}: nobody has begun it yet", options.job_id, options.endpoint);
  try {
    const Json json = parse_json(entry.text, "the job's recipe", {.depth = 4, .values = 1 << 16});
    std::vector<JournalLine> changes;
    for (const Json& line : json.at("changes"))
      changes.push_back({line.at("step").get<std::int64_t>(), parse_control(line.dump())});
    return {json.at("name").get<std::string>(),
            json.at("toml").get<std::string>(),
            json.at("plan").get<std::string>(),
            json.at("least").get<int>(),
            json.at("most").get<int>(),
            json.at("check_replicas").get<std::int64_t>(),
            std::move(changes)};
  } catch (const Json::exception& problem) {
    bad_input("the recipe of the job '{}' at {} cannot be read: {}", options.job_id, options.endpoint, problem.what());
  }
}

void run_elastic_nodes(const TrainSettings& s, const LaunchOptions& launch,
                       const std::shared_ptr<const ReadyJob>& ready, const PrepareJob& prepare) {
  ElasticNode(s, launch, ready, prepare).run();
}

}  // namespace echelon::cli
