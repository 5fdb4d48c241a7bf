// Parameter servers: the model is cut into keys, each on one server; workers send letters to them. Servers live on the
// workers' own ranks (one, some or all of them), as tasks beside the training: `servers` shards on as many ranks.

#include <algorithm>
#include <numeric>

#include "parallel/exchanges/exchanges.h"
#include "parallel/exchanges/server_client.h"

namespace echelon::exchanges {

namespace {

class Kind : public ExchangeKind {
 public:
  explicit Kind(const ServerSettings& settings) : settings_(settings) {}
  ExchangeTraits traits() const override {
    return {.in_lockstep = false,
            .orders_slices = true,
            .merges_steps = settings_.n_push > 1 || settings_.n_fetch > 1 || settings_.warm_start > 0};
  }
  std::unique_ptr<Exchange> make(ExchangeParts parts) const override {
    return std::make_unique<ServerClient>(settings_, std::move(parts));
  }
  std::string traffic_text() const override {
    return "2 (n-1) W: every worker sends all servers their parts and gets answers, but for those on its own rank "
           "(with "
           "n_push and n_fetch only every so many steps; ssp: an answer at most every `staleness` steps while workers "
           "are "
           "equally fast; a_bsp: and up to n-1 letters without content)";
  }
  Traffic traffic(const Case& c) const override {
    const bool cached = c.sync.kind == Sync::Kind::ssp;
    const double pushes = 1.0 / static_cast<double>(settings_.n_push);
    const double fetches = cached ? 1.0 / static_cast<double>(std::max<std::int64_t>(1, c.sync.staleness))
                                  : 1.0 / static_cast<double>(settings_.n_fetch);
    // Fetches in steps without a push need a letter of their own, without content.
    const double pulls =
        cached ? 0 : fetches - 1.0 / static_cast<double>(std::lcm(settings_.n_push, settings_.n_fetch));
    Traffic sum{.at_most = cached || c.sync.kind == Sync::Kind::quorum || c.sync.kind == Sync::Kind::a_bsp};
    const double away = c.workers - 1;  // workers that are not on the server's rank
    constexpr double head = Mail::header_bytes;
    for (const Key& k : cut_into_keys(settings_, {c.workers, c.floats, c.tensors, c.order}))
      sum = sum + away * (pushes * Traffic{2, head + c.bytes(k.range)} +
                          fetches * Traffic{2, head + c.answer_bytes(k.range)} + pulls * Traffic{1, head});
    return c.sync.kind == Sync::Kind::a_bsp ? sum + away * Traffic{1, head} : sum;
  }

 private:
  ServerSettings settings_;
};

}  // namespace

std::unique_ptr<const ExchangeKind> server(OptionReader& options) {
  ServerSettings s;
  const auto given = options.options().items.find("servers");
  if (given != options.options().items.end() && std::holds_alternative<std::string>(given->second.value))
    s.servers = options.choice("servers", "all", {"all"}) == "all" ? 0 : 1;
  else
    s.servers = static_cast<int>(options.integer("servers", 1, 1, 100'000));
  s.n_push = options.integer("n_push", 1, 1, 1'000'000);
  s.n_fetch = options.integer("n_fetch", 1, 1, 1'000'000);
  s.warm_start = options.integer("warm_start", 0, 0, 1'000'000'000);
  s.planned = options.flag("planned", true);
  return std::make_unique<Kind>(s);
}

}  // namespace echelon::exchanges
