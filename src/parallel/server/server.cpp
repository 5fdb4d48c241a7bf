// Parameter servers: the model is cut into keys, each on one server; workers send messages to them. Servers live on the
// workers' own ranks (one, some or all of them), as tasks beside the training: `servers` shards on as many ranks.
//
//   server_keys      what both sides agree on: keys, and what messages mean
//   server_client*   the worker: when it pushes and waits, what leaves (filter, budget, factors), beside backward
//                    (overlap), the end of a round (meeting)
//   server_shard*    the server: one at a time, in rounds, among other sites (mirror, sites), its memory
//   server_chain     its replicas
//   server_relay     between them, where messages are added up on the way (overlay)

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>

#include "parallel/composition.h"
#include "parallel/exchanges/exchanges.h"
#include "parallel/server/client.h"

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
            .sums_on_the_way = settings_.overlay.kind != Overlay::Kind::flat,
            .no_own_gradient = settings_.factors,
            .sites = settings_.overlay.kind == Overlay::Kind::flat && settings_.replicas == 1};
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
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<ServerClient>(settings_, std::move(parts));
  }
  std::string traffic_text() const override {
    return "2 (n-1) W: every worker sends all servers their parts and gets answers, but for those on its own rank "
           "(with "
           "when.n_push and n_fetch only every so many steps; ssp: an answer at most every `staleness` steps while "
           "workers "
           "are "
           "equally fast; a_bsp: and up to n-1 messages without content; every further replica of a server: n W more; "
           "filters and order magnitude: less; factors: b (in + out) numbers for a layer in out, if that is less, with "
           "b "
           "samples of a worker; sync approximate: and up to 2 n W to each other site)";
  }
  Traffic traffic(const TrafficQuery& c) const override {
    const bool cached = c.sync.kind == Sync::Kind::ssp;
    const double pushes = 1.0 / static_cast<double>(c.when.n_push);
    // A cache saves fetches, about all but one in `staleness`; at most there is one in every step.
    const double fetches = cached ? 1 : 1.0 / static_cast<double>(c.when.n_fetch);
    // Fetches in steps without a push need a message of their own, without content.
    const double pulls = cached ? 1 : fetches - 1.0 / static_cast<double>(std::lcm(c.when.n_push, c.when.n_fetch));
    Traffic sum{.at_most = cached || c.sync.kind == Sync::Kind::quorum || c.sync.kind == Sync::Kind::a_bsp};
    constexpr double head = Mailbox::header_bytes;
    double away = c.workers - 1;  // workers that are not on the server's rank
    const std::vector<Key> keys = cut_into_keys(settings_, {c.workers, c.floats, c.tensors, c.order});
    for (const Key& k : keys) {
      if (!c.members.empty())
        away = static_cast<double>(c.members.size()) - static_cast<double>(std::ranges::count(c.members, k.server));
      sum = sum + away * (pushes * Traffic{2, head + push_bytes(c, k.range)} +
                          fetches * Traffic{2, head + c.answer_bytes(k.range)} + pulls * Traffic{1, head});
    }
    for (const Key& k : keys)
      sum = sum + (c.workers * (settings_.replicas - 1)) * Traffic{2, head + push_bytes(c, k.range)};
    const bool merges = settings_.overlay.kind != Overlay::Kind::flat && !c.sync.in_rounds();  // what comes together
    if (merges && settings_.overlay.kind == Overlay::Kind::tree) {  // at most everything passes every level by itself
      int levels = 1;
      for (std::int64_t reach = settings_.overlay.fanout + 1; reach < c.workers;
           reach = reach * settings_.overlay.fanout + 1)
        ++levels;
      sum = levels * sum;
    }
    const bool uneven = settings_.factors && c.batch % static_cast<std::size_t>(c.workers) != 0;
    sum.at_most = sum.at_most || merges || uneven || c.sync.kind == Sync::Kind::soft || settings_.filters.any() ||
                  c.order.by_magnitude;
    if (c.sync.kind == Sync::Kind::approximate) {  // each update may go to each other site
      const double sites = c.sync.sites > 0 ? std::min(c.sync.sites, c.workers) : c.workers;
      sum = sum +
            c.workers * (sites - 1) * static_cast<double>(server_count(settings_, c.workers)) * Traffic{2, head, true};
      sum.bytes += c.workers * (sites - 1) * 8.0 * static_cast<double>(c.floats);
    }
    return c.sync.kind == Sync::Kind::a_bsp ? sum + away * Traffic{1, head} : sum;
  }

 private:
  void accepts_factors(const Composition& c, Problems& problems) const;
  // Factors: with the samples of the worker that has most.
  double push_bytes(const TrafficQuery& c, Range key) const {
    if (!settings_.factors) return c.bytes(key);
    const auto workers = static_cast<std::size_t>(c.workers);
    return 4.0 * static_cast<double>(FactorMessage(key, c.products).floats((c.batch + workers - 1) / workers));
  }

  ServerSettings settings_;
};

void ServerKind::accepts(const Composition& c, const CompositionFacts& facts, Problems& problems) const {
  ExchangeKind::accepts(c, facts, problems);
  if (settings_.factors) accepts_factors(c, problems);
  const SyncTraits sync = c.sync.traits();
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
}

void ServerKind::accepts_factors(const Composition& c, Problems& problems) const {
  const SyncTraits sync = c.sync.traits();
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

void read_filters(OptionReader& options, ServerSettings& s) {
  FilterSettings& f = s.filters;
  for (const std::string& name : options.texts("filters", {})) {
    if (name == "significant")
      f.significant = true;
    else if (name == "skip")
      f.skip = 0.5;
    else
      options.problem("filters", fmt::format("has no '{}': take significant, skip or both", name));
  }
  if (f.significant) f.threshold = options.number("threshold", 1e-3, 0, 1);
  if (f.skip > 0) {
    f.skip = options.number("skip", 0.5, 1e-6, 0.99);
    f.unbiased = options.flag("unbiased", false);
  }
  if (f.any()) f.block = static_cast<std::size_t>(options.integer("block", 64, 1, 1 << 20));
}

void read_factors(OptionReader& options, ServerSettings& s) {
  s.factors = options.flag("factors", false);
  if (s.factors && s.filters.any())
    options.problem("factors", "are no gradient of which small numbers could be left out: leave out filters");
}

// "0@20": server 0 after 20 updates. "0.1@20": its first replica.
std::optional<ServerSettings::Death> read_death(std::string_view text) {
  const auto trimmed = [](std::string_view t) {
    while (!t.empty() && t.front() == ' ') t.remove_prefix(1);
    while (!t.empty() && t.back() == ' ') t.remove_suffix(1);
    return t;
  };
  const auto number = [](std::string_view t) {
    const bool digits = !t.empty() && t.size() < 10 && t.find_first_not_of("0123456789") == std::string_view::npos;
    return digits ? std::stoll(std::string(t)) : -1;
  };
  text = trimmed(text);
  const auto at = text.find('@');
  if (at == std::string_view::npos) return {};
  const std::string_view who = text.substr(0, at);
  const auto dot = who.find('.');
  const auto server = number(who.substr(0, dot));
  const auto position = dot == std::string_view::npos ? 0 : number(who.substr(dot + 1));
  const auto update = number(text.substr(at + 1));
  if (server < 0 || position < 0 || update < 0) return {};
  return ServerSettings::Death{static_cast<int>(server), static_cast<int>(position), update};
}

void read_replicas(OptionReader& options, ServerSettings& s) {
  s.replicas = static_cast<int>(options.integer("replicas", 1, 1, ChainPlace::most_replicas));
  const std::string kill = options.text("kill_server", "");
  if (kill.empty()) return;
  for (std::size_t at = 0; at <= kill.size();) {
    const std::size_t end = std::min(kill.find(',', at), kill.size());
    const auto death = read_death(std::string_view(kill).substr(at, end - at));
    at = end + 1;
    if (!death)
      return options.problem("kill_server",
                             "is the number of a server and of its update, \"0@20\" for example; \"0.1@20\" is the "
                             "server's first replica; commas separate several");
    s.deaths.push_back(*death);
  }
  if (s.replicas < 2) options.problem("kill_server", "loses a server for good: set replicas to 2 or more");
  for (const ServerSettings::Death& d : s.deaths) {
    if (s.replicas > 1 && d.position >= s.replicas)
      options.problem("kill_server", fmt::format("names replica {}.{}, and a server's last one is number {}: set "
                                                 "replicas to {} or more",
                                                 d.server, d.position, s.replicas - 1, d.position + 1));
    const auto same_member = [&](const ServerSettings::Death& o) {
      return o.server == d.server && o.position == d.position;
    };
    if (std::ranges::count_if(s.deaths, same_member) > 1)
      return options.problem("kill_server", fmt::format("names {}.{} twice, and what is lost is not lost again: leave "
                                                        "out one of them",
                                                        d.server, d.position));
    const auto same_server = [&](const ServerSettings::Death& o) { return o.server == d.server; };
    if (s.replicas > 1 && std::ranges::count_if(s.deaths, same_server) >= s.replicas)
      return options.problem("kill_server", fmt::format("leaves nobody of server {}'s chain: set replicas to more than "
                                                        "those that it loses",
                                                        d.server));
  }
}

std::unique_ptr<const ExchangeKind> make_server(OptionReader& options) {
  ServerSettings s;
  const auto given = options.options().items.find("servers");
  const auto* word = given == options.options().items.end() ? nullptr : std::get_if<std::string>(&given->second.value);
  if (word && *word != "all")
    options.problem("servers", fmt::format("must be a whole number, at least 1, or \"all\", is \"{}\"", *word));
  if (word)
    options.ignore("servers"), s.servers = 0;
  else
    s.servers = static_cast<int>(options.integer("servers", 1, 1, 100'000));
  s.planned = options.flag("planned", true);
  read_filters(options, s);
  read_replicas(options, s);
  read_factors(options, s);
  const auto fanout = static_cast<int>(options.integer("fanout", 0, 0, 10'000));
  const bool two_level = options.flag("two_level", false);
  if (fanout > 0) s.overlay = {.kind = Overlay::Kind::tree, .fanout = fanout};
  if (two_level) s.overlay.kind = Overlay::Kind::hosts;
  if (fanout > 0 && two_level) options.problem("fanout", "and two_level exclude each other: leave out one of them");
  if (s.overlay.kind != Overlay::Kind::flat && (s.replicas > 1 || s.filters.any()))
    options.problem(s.overlay.kind == Overlay::Kind::tree ? "fanout" : "two_level",
                    "has sums on the way, of which replicas and filters know nothing: leave these out");
  if (s.overlay.kind != Overlay::Kind::flat && s.factors)
    options.problem("factors",
                    "are of each worker's own samples, and sums on the way have none: leave out fanout and "
                    "two_level, or factors");
  return std::make_unique<ServerKind>(s);
}

}  // namespace

ExchangePart server() {
  return {{"server",
           "parameter servers that live on the workers",
           {{"servers", "1", "shards of the model: 1 to n, or \"all\" for one on each worker"},
            {"fanout", "0", "above 0: servers form a tree in which each has so many children"},
            {"two_level", "false", "workers of one host merge before the network"},
            {"replicas", "1", "of each shard, in a chain"},
            {"factors", "false", "pushes have inputs and errors of fully connected layers if that is less"},
            {"filters", "[]", "significant (leave out small changes), skip (leave out at random)"},
            {"threshold", "0.001", "relative size below which `significant` leaves a change out"},
            {"skip", "0.5", "probability with which `skip` leaves a block of numbers out"},
            {"unbiased", "false", "skipped blocks are dropped, and others made larger"},
            {"block", "64", "numbers that filters look at together"},
            {"kill_server", "\"\"",
             "an experiment: \"0@20\" loses server 0's state after 20 updates, \"0.1@20\" that of its first replica; "
             "several with commas"},
            {"planned", "true",
             "one message for all that a server has, when all of it is complete; false: one for each tensor"}}},
          make_server};
}

}  // namespace echelon::exchanges
