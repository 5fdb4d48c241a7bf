#include "member/agent.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace echelon {

namespace {
constexpr double renewals_in_a_lease = 4;
constexpr double silent_share =
    0.6;  // of a lease, after which the ranks of a node that does not reach the store do no step
}  // namespace

NodeOrder Agent::tick(double now, const NodeState& state) {
  try {
    trouble_.clear();
    if (!keep_lease(now, state)) return {.act = NodeOrder::stop_now, .why = "its lease has run out"};
    return decide(now, state);
  } catch (const StoreError& problem) {
    trouble_ = problem.what();
  } catch (const BadInput& problem) {
    trouble_ = problem.what();
  }
  return {};
}

// False if the ranks run under a lease that has run out.
bool Agent::keep_lease(double now, const NodeState& state) {
  if (lease_ && now - renewed_ > options_.lease_seconds / renewals_in_a_lease && !options_.bugs.never_renew) {
    if (store_.renew(*lease_)) {
      renewed_ = now;
    } else {
      lease_.reset();
    }
  }
  if (lease_) return true;
  if (state.running && !id_.empty()) return false;
  id_ = options_.name + "-" + options_.fresh().substr(0, 8);
  lease_ = store_.grant(options_.lease_seconds, options_.prefix + "node/" + id_, "");
  renewed_ = now;
  return true;
}

bool Agent::write(const Membership& m, std::uint64_t revision) {
  const std::string key = options_.prefix + "members";
  if (options_.bugs.blind_write) revision = store_.read(key).revision;
  return store_.write_if(key, revision, write_membership(m));
}

NodeOrder Agent::decide(double now, const NodeState& state) {
  const Store::Entry entry = store_.read(options_.prefix + "members");
  Membership m{.least = options_.least, .most = options_.most};
  if (entry.revision > 0) m = read_membership(entry.text);
  joined_ |= m.find(id_) != nullptr;  // also if the answer to its write was lost
  if (m.over && !options_.bugs.ignore_end) {
    if (joined_ || state.generation > 0) {
      if (state.running && m.outcome.empty()) return {.view = m};  // its ranks are about to end as well
      if (state.running) return {.act = NodeOrder::stop_now, .view = m, .why = m.outcome};
      return {.act = NodeOrder::end, .view = m, .why = m.outcome};
    }
    // A job of the same name has ended before: another one begins. Its generations go on, so that no number comes back.
    m = {.generation = m.generation, .least = options_.least, .most = options_.most};
  }
  return state.running ? decide_running(m, entry.revision, state) : decide_idle(now, m, entry.revision, state);
}

NodeOrder Agent::decide_running(Membership& m, std::uint64_t revision, const NodeState& state) {
  const MemberBugs& bugs = options_.bugs;
  const MemberNode* me = m.find(id_);
  if (!me) return {.act = NodeOrder::stop_now, .view = m, .why = "it was evicted"};
  if (me->generation != state.generation)
    return {.act = NodeOrder::stop_now, .view = m, .why = "another generation has formed"};
  if (bugs.ready_while_running && wants_change(m)) {
    make_ready(m, {.id = id_, .step = state.step, .offer = state.offer});
    write(m, revision);
    return {.view = m};
  }
  bool changed = evict_lost(m);
  for (MemberNode& n : m.nodes)
    if (n.id == id_ && state.leaving && !n.leaving) n.leaving = changed = true;
  if (changed) write(m, revision);  // if another node was faster, the next tick sees what it wrote
  if (wants_change(m) && !bugs.ignore_newcomers) return {.act = NodeOrder::stop_softly, .view = m};
  return {.view = m};
}

NodeOrder Agent::decide_idle(double now, Membership& m, std::uint64_t revision, const NodeState& state) {
  const MemberBugs& bugs = options_.bugs;
  const MemberNode* me = m.find(id_);
  if (state.outcome) {
    end(m, *state.outcome);
    remove(m, id_);
    if (write(m, revision)) return {.act = NodeOrder::end, .view = m, .why = m.outcome};
    return {.view = m};
  }
  if (state.leaving || (me && me->leaving)) {
    if (!me) return {.act = NodeOrder::end, .view = m, .why = ""};
    remove(m, id_);
    if (write(m, revision)) return {.act = NodeOrder::end, .view = m, .why = ""};
    return {.view = m};
  }
  // Not a generation that has been in vain already: its table would lack those who have stopped.
  const bool is_in = me && m.has(*me) && m.generation > 0 && (m.whole() || bugs.start_broken);
  if (is_in && (state.generation < m.generation || bugs.start_twice)) return {.act = NodeOrder::start, .view = m};
  if (!joined_) joined_step_ = state.step;
  MemberNode mine{.id = id_,
                  .step = bugs.old_step ? joined_step_ : state.step,
                  .workers = state.workers,
                  .changes = state.changes,
                  .transient = options_.transient,
                  .offer = state.offer};
  bool changed = false;
  if (!me || !m.waits(*me) || me->step != mine.step || me->changes != mine.changes || me->offer != mine.offer) {
    if (bugs.first_call_only && !me && joined_) return {.view = m};
    make_ready(m, mine);
    changed = true;
  }
  changed |= evict_lost(m);
  changed |= evict_late(now, m, state);
  bool formed = false;
  if (options_.most_at) {
    std::int64_t newest = 0;
    for (const MemberNode& n : m.nodes)
      if (m.waits(n)) newest = std::max(newest, n.step);
    const int most = std::clamp(options_.most_at(newest), m.least, options_.most);
    if (m.running() == 0) changed |= std::exchange(m.most, most) != most;
  }
  if (may_form(m, bugs) && called_long_enough(now, m)) {
    form(m, options_.fresh(), bugs);
    changed = formed = true;
    others_ready_ = enough_ = -1;
  }
  if (!changed) return {.view = m};
  if (!write(m, revision)) return {.view = m};
  joined_ = true;
  if (formed && m.find(id_) && m.has(*m.find(id_))) return {.act = NodeOrder::start, .view = m};
  return {.view = m};
}

// Nodes whose lease has run out. A node's lease is older than its entry, so one without a lease has lost it.
bool Agent::evict_lost(Membership& m) {
  if (options_.bugs.never_evict) return false;
  const std::string prefix = options_.prefix + "node/";
  std::vector<std::string> alive = store_.list(prefix);
  const auto lives = [&](const MemberNode& n) {
    return n.id == id_ || (std::ranges::find(alive, prefix + n.id) != alive.end() && !options_.bugs.evict_living);
  };
  return std::erase_if(m.nodes, [&](const MemberNode& n) { return !lives(n); }) > 0;
}

// Once some nodes of a generation have stopped, the others cannot do a step either: those that are not ready soon are
// dead or cut off, and the others go on without them.
bool Agent::evict_late(double now, Membership& m, const NodeState& state) {
  const int late = m.generation > 0 ? m.running() : 0;
  if (late == 0 || m.waiting() == 0 || options_.bugs.never_suspect) {
    others_ready_ = -1;
    return false;
  }
  if (state.generation != m.generation && !options_.bugs.suspect_from_outside)
    return false;  // one that was not in it cannot tell whether it does steps
  if (others_ready_ < 0) others_ready_ = now;
  if (now - others_ready_ < options_.suspect_seconds) return false;
  return std::erase_if(m.nodes, [&](const MemberNode& n) { return m.has(n); }) > 0;
}

// Before the first generation others may come until the most are there; later everybody has been in one.
bool Agent::called_long_enough(double now, const Membership& m) {
  if (!m.session.empty() || m.waiting() >= m.most || options_.bugs.no_last_call) return true;
  if (enough_ < 0) enough_ = now;
  return now - enough_ >= options_.last_call_seconds;
}

double Agent::valid_until() const {
  return options_.bugs.no_fence ? std::numeric_limits<double>::infinity()
                                : renewed_ + silent_share * options_.lease_seconds;
}

void Agent::resign() {
  if (!lease_) return;
  try {
    store_.revoke(*lease_);
  } catch (const Error&) {
  }
  lease_.reset();
}

}  // namespace echelon
