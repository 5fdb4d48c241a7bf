#include "member/membership.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/json.h"

namespace echelon {

namespace {

constexpr std::int64_t most_generations = std::int64_t{1} << 40;
constexpr std::size_t most_member_nodes = 4096, most_ports = 65536;

std::int64_t whole_number(const Json& of, const char* key, std::int64_t least, std::int64_t most) {
  const Json& value = of.at(key);
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t(most)) ||
      value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
    bad_input("the membership of a job: '{}' is no whole number from {} to {}", key, least, most);
  return value.get<std::int64_t>();
}

Json to_json(const MemberNode& n) {
  return {{"id", n.id},
          {"generation", n.generation},
          {"step", n.step},
          {"workers", n.workers},
          {"changes", n.changes},
          {"leaving", n.leaving},
          {"transient", n.transient},
          {"host", n.offer.host_id},
          {"address", n.offer.address},
          {"ports", n.offer.ports},
          {"seed", n.offer.seed}};
}

MemberNode member_node(const Json& j) {
  MemberNode n;
  n.id = j.at("id").get<std::string>();
  n.generation = whole_number(j, "generation", 0, most_generations);
  n.step = whole_number(j, "step", -1, std::numeric_limits<std::int64_t>::max());
  n.workers = static_cast<int>(whole_number(j, "workers", 0, std::numeric_limits<int>::max()));
  n.changes = static_cast<int>(whole_number(j, "changes", 0, std::numeric_limits<int>::max()));
  n.leaving = j.at("leaving").get<bool>();
  n.transient = j.at("transient").get<bool>();
  n.offer.host_id = j.at("host").get<std::string>();
  n.offer.address = j.at("address").get<std::string>();
  if (!j.at("ports").is_array() || j.at("ports").empty() || j.at("ports").size() > most_ports)
    bad_input("the membership of a job: node '{}' has no ranks, or too many", n.id);
  for (const Json& port : j.at("ports"))
    n.offer.ports.push_back(static_cast<std::uint16_t>(whole_number(Json{{"port", port}}, "port", 1, 65535)));
  if (!j.at("seed").is_number_unsigned()) bad_input("the membership of a job: the seed is no number");
  n.offer.seed = j.at("seed").get<std::uint64_t>();
  return n;
}

}  // namespace

const MemberNode* Membership::find(std::string_view id) const {
  const auto it = std::ranges::find(nodes, id, &MemberNode::id);
  return it == nodes.end() ? nullptr : &*it;
}

int Membership::running() const {
  return static_cast<int>(std::ranges::count_if(nodes, [&](const MemberNode& n) { return has(n); }));
}

int Membership::waiting() const {
  return static_cast<int>(std::ranges::count_if(nodes, [&](const MemberNode& n) { return waits(n) && !n.leaving; }));
}

void make_ready(Membership& m, const MemberNode& node) {
  const auto it = std::ranges::find(m.nodes, node.id, &MemberNode::id);
  MemberNode& entry = it == m.nodes.end() ? m.nodes.emplace_back(node) : *it;
  const bool leaving = entry.leaving;
  entry = node;
  entry.leaving = leaving || node.leaving;
  entry.generation = m.generation + 1;
}

void remove(Membership& m, std::string_view id) {
  std::erase_if(m.nodes, [&](const MemberNode& n) { return n.id == id; });
}

bool may_form(const Membership& m, const MemberBugs& bugs) {
  if (m.over || (m.running() > 0 && m.generation > 0 && !bugs.form_beside_running)) return false;
  return m.waiting() >= (bugs.form_too_few ? 1 : m.least);
}

void form(Membership& m, std::string session, const MemberBugs& bugs) {
  std::vector<MemberNode> ready, rest;
  for (MemberNode& n : m.nodes) (m.waits(n) && !n.leaving ? ready : rest).push_back(std::move(n));
  std::ranges::stable_sort(ready, [&](const MemberNode& a, const MemberNode& b) {
    if (a.step == b.step) return a.transient < b.transient;
    return bugs.oldest_state_first ? a.step < b.step : a.step > b.step;
  });
  const auto most = static_cast<std::size_t>(bugs.form_too_many ? m.most + 1 : m.most);
  if (!bugs.keep_generation) ++m.generation;
  if (!bugs.keep_session) m.session = std::move(session);
  m.nodes.clear();
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const bool taken = i < most;
    ready[i].generation = taken ? m.generation : m.generation + 1;
    m.nodes.push_back(std::move(ready[i]));
  }
  for (MemberNode& n : rest)
    if (n.leaving) n.generation = m.generation + 1, m.nodes.push_back(std::move(n));
  m.size = m.running();
  if (!m.nodes.empty()) m.step = std::max(m.step, m.nodes.front().step);
}

void end(Membership& m, std::string outcome) {
  if (m.over) return;
  m.over = true;
  m.outcome = std::move(outcome);
}

bool wants_change(const Membership& m) {
  const bool leaves = std::ranges::any_of(m.nodes, [&](const MemberNode& n) { return m.has(n) && n.leaving; });
  return leaves || (m.waiting() > 0 && m.running() < m.most);
}

tcp::JobTable table_for(const Membership& m, std::string_view id) {
  std::vector<tcp::NodeOffer> offers;
  std::size_t mine = 0;
  for (const MemberNode& n : m.nodes) {
    if (!m.has(n)) continue;
    if (n.id == id) mine = offers.size();
    offers.push_back(n.offer);
  }
  return tcp::table_of(offers, mine, tcp::parse_secret(m.session, "the session of the generation").bytes);
}

std::string write_membership(const Membership& m) {
  Json nodes = Json::array();
  for (const MemberNode& n : m.nodes) nodes.push_back(to_json(n));
  return Json{{"generation", m.generation}, {"step", m.step},       {"size", m.size},
              {"least", m.least},           {"most", m.most},       {"over", m.over},
              {"outcome", m.outcome},       {"session", m.session}, {"nodes", std::move(nodes)}}
      .dump();
}

Membership read_membership(std::string_view text) try {
  const Json j = parse_json(text, "the membership of a job", {.depth = 4});
  Membership m;
  m.generation = whole_number(j, "generation", 0, most_generations);
  m.step = whole_number(j, "step", -1, std::numeric_limits<std::int64_t>::max());
  m.size = static_cast<int>(whole_number(j, "size", 0, most_member_nodes));
  m.least = static_cast<int>(whole_number(j, "least", 1, most_member_nodes));
  m.most = static_cast<int>(whole_number(j, "most", m.least, most_member_nodes));
  m.over = j.at("over").get<bool>();
  m.outcome = j.at("outcome").get<std::string>();
  m.session = j.at("session").get<std::string>();
  if (!j.at("nodes").is_array() || j.at("nodes").size() > most_member_nodes)
    bad_input("the membership of a job: 'nodes' is no list, or too long");
  for (const Json& n : j.at("nodes")) {
    MemberNode node = member_node(n);
    if (m.find(node.id)) bad_input("the membership of a job: node '{}' is there twice", node.id);
    m.nodes.push_back(std::move(node));
  }
  return m;
} catch (const Json::exception& problem) {
  bad_input("the membership of a job cannot be read: {}", problem.what());
}

}  // namespace echelon
