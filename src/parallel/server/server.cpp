// Parameter servers: the model is cut into keys, each on one server; workers send messages to them. Servers live on the
// workers' own ranks (one, some or all of them), as tasks beside the training: `servers` shards on as many ranks.
//
//   settings, keys, messages   what both sides agree on
//   client                     the worker: when it pushes and waits; its collaborators are listed in client.h
//   shard                      the server: merges and answers; its collaborators are listed in shard.h
//   push_*                     what happens to a push on its way
//   replication                copies of servers: chains (chain*) and sites (sites, site_mirror)
//   relay                      between workers and servers, where messages are added up on the way (overlay)

#include <algorithm>
#include <numeric>

#include "parallel/composition.h"
#include "parallel/exchanges/exchanges.h"
#include "parallel/server/client.h"
#include "parallel/server/factors.h"

namespace echelon::exchanges {

namespace {

class ServerKind : public ExchangeKind {
 public:
  explicit ServerKind(const ServerSettings& settings) : settings_(settings) {}
  ExchangeTraits traits() const override {
    return {.in_lockstep = false,
            .plain_numbers = settings_.filters.any() || settings_.factors,
            .sends_early = true,
            .orders_slices = true,
            .merges_steps = true,
            .sums_on_the_way = !settings_.is_flat(),
            .no_own_gradient = settings_.factors,
            .cores_race = settings_.racing,
            .sites = settings_.has_sites()};
  }
  void accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const override;
  std::string problem(int workers, bool) const override {
    for (const ServerSettings::Death& d : settings_.deaths)
      if (d.server >= server_count(settings_, workers))
        return fmt::format("kill_server names server {}, and there are {}: take a number below that", d.server,
                           server_count(settings_, workers));
    if (workers == 1 || settings_.servers <= workers) return {};
    return fmt::format(
        "{} servers are more than there are ranks for them to live on: set servers to at most {}, or to "
        "\"all\"",
        settings_.servers, workers);
  }
  std::string problem_within(std::int64_t updates) const override {
    for (const ServerSettings::Death& d : settings_.deaths)
      if (d.at >= updates)
        return fmt::format(
            "kill_server waits for {} updates of server {} and the contributions after them, and this run has at most "
            "{}: take a number below that, or train longer",
            d.at, d.server, updates);
    return {};
  }
  FastMemory fast_memory() const override { return settings_.memory; }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<ServerClient>(settings_, std::move(parts));
  }
  std::string messages_text() const override {
    return "4 (n-1) for each key (what a server has; a tensor of it with planned = false; a slice of it where the "
           "order "
           "has slices): a header and numbers, both ways";
  }
  std::string traffic_text() const override {
    return "2 (n-1) W: every worker sends all servers their parts and gets answers, but for those on its own rank "
           "(with when.n_push and n_fetch only every so many steps; ssp: an answer at most every `staleness` steps "
           "while workers are equally fast; a_bsp: and up to n-1 messages without content; every further replica of a "
           "server: n W more; filters and order magnitude: less; factors: b (in + out) numbers for a layer in out, if "
           "that is less, with b samples of a worker; sites: and up to 2 n W to each other site)";
  }
  Traffic traffic(const TrafficQuery& c) const override {
    const SyncTraits sync = c.sync->traits();
    Traffic sum = traffic_with_servers(c, sync);
    const std::vector<Key> keys = cut_into_keys(settings_, {c.workers, c.floats, c.tensors, c.order});
    for (const Key& k : keys)
      sum = sum + (c.workers * (settings_.replicas - 1)) * Traffic{2, head + push_bytes(c, k.range)};
    const bool merges = !settings_.is_flat() && !sync.in_rounds;    // what comes together
    if (merges && settings_.overlay.kind == Overlay::Kind::tree) {  // at most everything passes every level by itself
      int levels = 1;
      for (std::int64_t reach = settings_.overlay.fanout + 1; reach < c.workers;
           reach = reach * settings_.overlay.fanout + 1)
        ++levels;
      sum = levels * sum;
    }
    const bool uneven = settings_.factors && c.batch % static_cast<std::size_t>(c.workers) != 0;
    sum.at_most = sum.at_most || sync.varies_traffic || merges || uneven || settings_.cache ||
                  settings_.filters.any() || c.order.by_magnitude;
    if (settings_.has_sites()) {  // each update may go to each other site
      const double sites = settings_.sites > 0 ? std::min(settings_.sites, c.workers) : c.workers;
      // A change, and what announces it.
      sum = sum + c.workers * (sites - 1) * static_cast<double>(keys.size()) * Traffic{3, 2 * head, true};
      sum.bytes += c.workers * (sites - 1) * 8.0 * static_cast<double>(c.floats);
    }
    return sync.hands_in_early ? sum + away(c, keys.back()) * Traffic{1, head} : sum;
  }

 private:
  void accepts_sites(const Composition& c, const CompositionFacts& facts, Problems& problems) const;
  void accepts_factors(const Composition& c, Problems& problems) const;
  static constexpr double head = Mailbox::header_bytes;

  // Workers that are not on the rank of the key's server.
  static double away(const TrafficQuery& c, const Key& key) {
    if (c.members.empty()) return c.workers - 1;
    return static_cast<double>(c.members.size()) - static_cast<double>(std::ranges::count(c.members, key.server));
  }

  Traffic traffic_with_servers(const TrafficQuery& c, const SyncTraits& sync) const {
    const bool cached = sync.asks_when_stale;  // at a worker, in ssp
    const double pushes = 1.0 / static_cast<double>(c.when.n_push);
    // A cache saves fetches, about all but one in `staleness`; at most there is one in every step.
    const double fetches = cached ? 1 : settings_.cache ? pushes : 1.0 / static_cast<double>(c.when.n_fetch);
    // Fetches in steps without a push need a message of their own, without content.
    const double asks = cached ? 1
                        : settings_.cache
                            ? 0
                            : fetches - 1.0 / static_cast<double>(std::lcm(c.when.n_push, c.when.n_fetch));
    // With a budget an answer comes unasked, or because it did not.
    const double unasked = sync.sends_unasked && c.order.by_magnitude ? 1 : 0;
    Traffic sum;
    for (const Key& k : cut_into_keys(settings_, {c.workers, c.floats, c.tensors, c.order}))
      sum = sum + away(c, k) * (pushes * Traffic{2, head + push_bytes(c, k.range)} +
                                (fetches + unasked) * Traffic{2, head + c.answer_bytes(k.range)} +
                                (asks + unasked) * Traffic{1, head});
    return sum;
  }

  // Factors: with the samples of the worker that has most.
  double push_bytes(const TrafficQuery& c, Range key) const {
    if (!settings_.factors) return c.bytes(key);
    const auto workers = static_cast<std::size_t>(c.workers);
    return 4.0 * static_cast<double>(FactorMessage(key, c.products).floats((c.batch + workers - 1) / workers));
  }

  ServerSettings settings_;
};

// Servers of a site have only its own workers' contributions, and change weights by what other sites send.
void ServerKind::accepts_sites(const Composition& c, const CompositionFacts& facts, Problems& problems) const {
  const RuleTraits rule = c.rule->traits();
  refuse(problems, !rule.movable || rule.quantity != RuleTraits::Quantity::gradient,
         fmt::format("exchange.sites send each other changes of weights, and rule {} does not take them: take "
                     "rule grad_push, or leave out exchange.sites",
                     c.rule_name));
  refuse(problems, !c.sync->traits().never_waits && !c.sync->most_site_lead(),
         fmt::format("sync {} needs to know all workers, and the servers of a site know its own only: take "
                     "sync approximate or async, or leave out exchange.sites",
                     c.sync_name));
  refuse(problems, facts.workers > 1 && settings_.sites > facts.workers,
         fmt::format("{} sites are more than the {} workers: set exchange.sites to at most {}", settings_.sites,
                     facts.workers, facts.workers));
}

void ServerKind::accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const {
  ExchangeKind::accepts(c, facts, problems);
  if (settings_.factors) accepts_factors(c, problems);
  const SyncTraits sync = c.sync->traits();
  refuse(problems, settings_.replicas > 1 && (!sync.answers_every_push || sync.hands_in_early),
         fmt::format("an update on replicated servers counts when its answer is there, but with sync {} not every push "
                     "gets one: take sync delay, bsp or async, or leave out exchange.replicas",
                     c.sync_name));
  refuse(
      problems, facts.workers > 0 && facts.workers < settings_.replicas,
      fmt::format("every replica of a server is on another rank: with {} workers set exchange.replicas to at most {}",
                  facts.workers, facts.workers));
  const std::string needs_answers = settings_.replicas > 1                           ? "replicas"
                                    : settings_.overlay.kind == Overlay::Kind::tree  ? "fanout"
                                    : settings_.overlay.kind == Overlay::Kind::hosts ? "two_level"
                                                                                     : "";
  refuse(problems, !needs_answers.empty() && c.when.merges_steps(),
         fmt::format("exchange.{} needs an answer to every push: leave out when.n_push, n_fetch and warm_start",
                     needs_answers));
  refuse(
      problems, settings_.racing && (c.rule->traits().local_step || c.sync->traits().bounded || c.when.merges_steps()),
      "with exchange.racing the cores of a worker move its copy within a batch, and the servers' answers put that "
      "right: "
      "take a rule and a sync that answer every push (grad_push; bsp, quorum or async), without n_push and n_fetch, or "
      "leave out exchange.racing");
  refuse(problems, settings_.racing && facts.split,
         "exchange.racing has the cores of a rank move one copy of the weights, and a split replica has stages on "
         "several: "
         "leave out exchange.racing, or --plan");
  refuse(problems, settings_.cache && c.when.n_push < 2,
         "exchange.cache gives every key its turn among when.n_push steps: set when.n_push to 2 or more");
  refuse(problems, settings_.cache && (c.when.n_fetch > 1 || c.when.warm_start > 0),
         "with exchange.cache a key is read when it is pushed: leave out when.n_fetch and warm_start");
  if (settings_.has_sites()) accepts_sites(c, facts, problems);
}

void ServerKind::accepts_factors(const Composition& c, Problems& problems) const {
  const SyncTraits sync = c.sync->traits();
  refuse(problems, !c.rule->traits().gradient_itself,
         fmt::format("exchange server sends the factors of gradients, but rule {} exchanges something else: take rule "
                     "grad_push, or leave out exchange.factors",
                     c.rule_name));
  refuse(problems, sync.bounded && !sync.answers_every_push,
         fmt::format("with exchange.factors a worker has no gradient of its own to step by, but with sync {} not every "
                     "push is answered: take sync delay, bsp or async, or leave out exchange.factors",
                     c.sync_name));
  refuse(problems, c.when.n_push > 1,
         "exchange.factors of several steps are as many times larger, and their product is that of one step: leave out "
         "when.n_push");
  refuse(problems, c.when.n_fetch > 1,
         "exchange.factors leave a worker without the gradient by which it would step between fetches: leave out "
         "when.n_fetch");
}

std::unique_ptr<const ExchangeKind> make_server(OptionReader& options) {
  return std::make_unique<ServerKind>(read_server_settings(options));
}

}  // namespace

ExchangePart server() {
  return {
      {"server",
       "parameter servers that live on the workers",
       {{"servers", "1", "shards of the model: 1 to n, or \"all\" for one on each worker"},
        {"fanout", "0", "above 0: servers form a tree in which each has so many children"},
        {"two_level", "false", "workers of one host merge before the network"},
        {"racing", "false", "a worker's cores race on its copy within a batch, without a lock"},
        {"replicas", "1", "of each shard, in a chain"},
        {"ring", "0", "above 0: 64 segments of the model lie on a hashing ring where each server has so many places"},
        {"cache", "false",
         "each key is pushed and read at its own turn among when.n_push steps, if its gradient is not all zeros"},
        {"factors", "false", "pushes have inputs and errors of fully connected layers if that is less"},
        {"filters", "[]", "significant (leave out small changes), skip (leave out at random)"},
        {"threshold", "0.001", "relative size below which `significant` leaves a change out"},
        {"skip", "0.5", "probability with which `skip` leaves a block of numbers out"},
        {"unbiased", "false", "skipped blocks are dropped, and others made larger"},
        {"block", "64", "numbers that filters look at together"},
        {"memory", "\"\"",
         "in which a worker computes, 64MiB for example: if its model needs more, parameters and sums of gradients lie "
         "in "
         "a file and are fetched ahead of their use"},
        {"swap", "\"/tmp\"", "the folder of that file"},
        {"processes", "false",
         "with replicas: the servers of a rank are a process of their own (worlds processes and tcp), which may be "
         "killed"},
        {"kill_server", "\"\"",
         "an experiment: \"0@20\" loses server 0's state after 20 updates, \"0.1@20\" that of its first replica; "
         "several with commas"},
        {"planned", "true",
         "one message for all that a server has, when all of it is complete; false: one for each tensor"},
        {"sites", "1",
         "groups of workers with servers of their own, between which only large changes travel; 0: hosts"},
        {"site_threshold", "0.01",
         "sites: a change travels if it is larger, relative to its weight; shrinks as 1 / sqrt(t)"},
        {"site_barrier", "65536",
         "sites: a message of more bytes is announced, and nobody reads that key before it is there"}}},
      make_server};
}

}  // namespace echelon::exchanges
