#include "parallel/server/site_mirror.h"

#include <algorithm>
#include <limits>

#include "parallel/server/sites.h"

namespace echelon::exchanges {

namespace {

constexpr std::int64_t for_ever = std::numeric_limits<std::int64_t>::max();

class SiteWorker : public WorkerReplication {
 public:
  SiteWorker(const ExchangeParts& parts, const ServerMap& map) : WorkerReplication(map) {
    if (map.keys_of(parts.rank()).count() > 0) mirrors_ = counterparts(map.sites, parts.rank());
  }
  std::vector<Rank> mirrors() const override { return mirrors_; }
  int models() const override { return std::ranges::max(map_.sites) + 1; }

 private:
  std::vector<Rank> mirrors_;
};

class SiteMirror : public ShardReplication {
 public:
  SiteMirror(const ServerSettings& settings, const ServerMap& map, ShardCore& core, std::function<void()> may_answer)
      : core_(core),
        most_lead_(core.parts.sync->most_site_lead()),
        may_answer_(std::move(may_answer)),
        mirrors_(counterparts(map.sites, core.parts.rank())),
        clocks_(mirrors_.size()),
        barrier_bytes_(settings.site_barrier),
        announced_(core.keys.size()) {
    if (mirrors_.empty()) return;
    for (const ShardKey& key : core.keys) changes_.emplace_back(settings.site_threshold, key.range.count());
  }

  Delivery receive(Message& message) override {
    if (message.head.kind != site_change && message.head.kind != site_barrier) return {};
    take_change(message);
    return {.handle = false};
  }
  bool holds_answers(const ShardKey& key) const override {
    if (announced_[key.number - core_.first()] > 0) return true;
    if (clocks_.empty() || !most_lead_) return false;
    const std::int64_t own = clock(), slowest = std::ranges::min(clocks_);
    return own != for_ever && slowest != for_ever && own > slowest + *most_lead_;
  }
  Rank latecomer() const override {
    return mirrors_[static_cast<std::size_t>(std::ranges::min_element(clocks_) - clocks_.begin())];
  }
  void before_update(const ShardKey& key) override {
    if (!mirrors_.empty()) changes_of(key).before_update(key.shared->model());
  }
  void after_update(ShardKey& key) override {
    if (mirrors_.empty()) return;
    changes_of(key).after_update(key.shared->model());
    if (const std::int64_t own = clock(), slowest = std::ranges::min(clocks_); own != for_ever && slowest != for_ever)
      core_.counts.site_lead = std::max(core_.counts.site_lead, static_cast<double>(own - slowest));
    tell_others(key);
  }
  void writer_left() override {
    if (!mirrors_.empty()) tell_others(core_.keys.front());
  }
  std::vector<StateSpan> state() override {
    std::vector<StateSpan> all{as_state("site clocks", clocks_), as_state("site clock told", told_)};
    for (std::size_t i = 0; i < changes_.size(); ++i)
      add_states(all, fmt::format("sites {} ", core_.keys[i].number), changes_[i].state());
    return all;
  }

 private:
  SignificantChanges& changes_of(const ShardKey& key) { return changes_[key.number - core_.first()]; }

  // Steps that this site's workers have made on average; for ever if they have all left.
  std::int64_t clock() const {
    if (core_.writers.all_gone()) return for_ever;
    std::int64_t updates = 0;
    for (const ShardKey& key : core_.keys) updates += key.version;
    return updates / static_cast<std::int64_t>(core_.keys.size() * core_.writers.size());
  }

  void tell_others(const ShardKey& key) {
    const std::span<const std::byte> bytes = changes_of(key).take(key.shared->model(), key.version);
    const std::int64_t now = clock();
    if (bytes.empty() && now == told_) return;
    told_ = now;
    // A long message is announced by a short one, which is there much sooner (Gaia's selective barrier).
    const bool announced = bytes.size() > barrier_bytes_;
    MessageHeader head{.kind = site_barrier, .tag = Exchange::server_tag, .key = key.number, .clock = now};
    for (const Rank mirror : mirrors_)
      if (announced) core_.parts.mailbox->post(mirror, head);
    head.kind = site_change, head.second = announced;
    for (const Rank mirror : mirrors_) core_.parts.mailbox->post(mirror, head, bytes);
  }

  void take_change(const Message& message) {
    const auto mirror = std::ranges::find(mirrors_, message.from);
    if (mirror == mirrors_.end() || !core_.has(message.head.key))
      fail("rank {} sent a change of key {}, but has no server with that key in another site", message.from,
           message.head.key);
    ShardKey& key = core_.key(message.head.key);
    std::int64_t& announced = announced_[key.number - core_.first()];
    if (message.head.kind == site_barrier) {
      ++announced;
      core_.counts.site_barriers += 1;
      return;
    }
    if (message.head.second != 0 && --announced < 0)
      fail("rank {} sent a change of key {} as announced, which it was not", message.from, message.head.key);
    if (!message.payload().empty()) SignificantChanges::apply(message.payload(), key.shared->movable());
    clocks_[static_cast<std::size_t>(mirror - mirrors_.begin())] = message.head.clock;
    may_answer_();
  }

  ShardCore& core_;
  std::optional<std::int64_t> most_lead_;
  std::function<void()> may_answer_;
  std::vector<Rank> mirrors_;                // the servers of the same keys in other sites
  std::vector<SignificantChanges> changes_;  // by key
  std::vector<std::int64_t> clocks_;         // by mirror: how far its site is
  std::int64_t told_ = 0;                    // the clock that the others were told
  std::size_t barrier_bytes_;
  std::vector<std::int64_t> announced_;  // by key: changes that are on their way
};

}  // namespace

std::unique_ptr<WorkerReplication> make_site_worker(const ExchangeParts& parts, const ServerMap& map) {
  return std::make_unique<SiteWorker>(parts, map);
}

std::unique_ptr<ShardReplication> make_site_mirror(const ServerSettings& settings, const ServerMap& map,
                                                   ShardCore& core, std::function<void()> may_answer) {
  return std::make_unique<SiteMirror>(settings, map, core, std::move(may_answer));
}

}  // namespace echelon::exchanges
